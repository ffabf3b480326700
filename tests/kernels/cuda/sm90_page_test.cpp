#include "kernels/cuda/sm90_page.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>

#include "kernels/matrix_view.hpp"
#include "tests/kernels/expert_case.hpp"

namespace moetier::kernels::cuda {
namespace {

constexpr std::byte k_poison{0xA5};

struct packed {
  expert_shape shape;
  expert e;
  sm90_page page;
  std::vector<std::byte> bytes;

  explicit packed(const expert_shape& s) : shape(s), page(s), bytes(page.bytes(), k_poison) {
    std::mt19937 random(7);
    e = random_expert(s, random);
    page.pack(e.tensors(), bytes);
  }

  template <class T>
  T at(std::uint64_t offset) const {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  }
};

expert_shape fp8_shape(std::uint32_t hidden, std::uint32_t intermediate) {
  return {.hidden_size = hidden,
          .intermediate_size = intermediate,
          .format = {.quant = quant_kind::fp8_block},
          .activation = activation_kind::swiglu};
}

expert_shape bf16_shape(std::uint32_t hidden, std::uint32_t intermediate, bool bias = false) {
  return {.hidden_size = hidden,
          .intermediate_size = intermediate,
          .format = {.quant = quant_kind::none, .stored = dtype::bf16},
          .activation = bias ? activation_kind::swiglu_bias : activation_kind::swiglu,
          .bias = bias};
}

// Every code of a canonical matrix lies where weight_offset() says.
void expect_codes(const packed& p, std::span<const std::byte> canonical, std::uint64_t base,
                  std::uint32_t rows, std::uint32_t columns, std::uint32_t blocks,
                  std::uint32_t (*page_row)(std::uint32_t)) {
  const gemm_format format = gemm_shape_of(p.shape).format;
  const std::size_t width = format == gemm_format::fp8 ? 1 : 2;
  std::size_t wrong = 0;
  for (std::uint32_t r = 0; r < rows; ++r) {
    for (std::uint32_t c = 0; c < columns; ++c) {
      const std::uint64_t at = base + weight_offset(format, blocks, page_row(r), c);
      wrong += std::memcmp(p.bytes.data() + at,
                           canonical.data() + (std::size_t{r} * columns + c) * width, width) != 0;
    }
  }
  EXPECT_EQ(wrong, 0u);
}

void expect_all_codes(const packed& p) {
  const page_layout& l = p.page.layout();
  const std::uint32_t h = p.shape.hidden_size;
  const std::uint32_t i = p.shape.intermediate_size;
  expect_codes(p, p.e.gate, l.fc1, i, h, l.fc1_blocks,
               [](std::uint32_t r) { return gate_page_row(r); });
  expect_codes(p, p.e.up, l.fc1, i, h, l.fc1_blocks,
               [](std::uint32_t r) { return up_page_row(r); });
  expect_codes(p, p.e.down, l.fc2, h, i, l.fc2_blocks, [](std::uint32_t r) { return r; });
}

TEST(sm90_page, puts_every_fp8_code_where_the_kernels_read_it) {
  expect_all_codes(packed(fp8_shape(384, 256)));
}

TEST(sm90_page, puts_every_bf16_element_where_the_kernels_read_it) {
  expect_all_codes(packed(bf16_shape(192, 320)));
}

TEST(sm90_page, interleaves_gate_and_up_by_eight) {
  EXPECT_EQ(gate_page_row(0), 0u);
  EXPECT_EQ(up_page_row(0), 8u);
  EXPECT_EQ(gate_page_row(7), 7u);
  EXPECT_EQ(gate_page_row(8), 16u);
  EXPECT_EQ(up_page_row(15), 31u);
}

TEST(sm90_page, pads_rows_of_scales_to_whole_bulk_copies) {
  const packed p(fp8_shape(768, 256));  // 6 and 2 blocks of K
  const page_layout& l = p.page.layout();
  EXPECT_EQ(l.scale_pitch1, 8u);
  EXPECT_EQ(l.scale_pitch2, 4u);
  const matrix_view gate(p.shape.format, p.e.gate, 256, 768);
  const matrix_view up(p.shape.format, p.e.up, 256, 768);
  const matrix_view down(p.shape.format, p.e.down, 768, 256);
  const auto scale = [&](const matrix_view& m, std::size_t block_row, std::size_t g) {
    return std::bit_cast<float>(m.scale_bits(block_row * 128, g));
  };
  for (std::size_t r = 0; r < 2; ++r) {
    for (std::size_t g = 0; g < 8; ++g) {
      const std::uint64_t at = l.scales1 + (r * l.scale_pitch1 + g) * 4;
      EXPECT_EQ(p.at<float>(at), g < 6 ? scale(gate, r, g) : 0.0F);
      EXPECT_EQ(p.at<float>(at + 2 * l.scale_pitch1 * 4), g < 6 ? scale(up, r, g) : 0.0F);
    }
  }
  for (std::size_t r = 0; r < 6; ++r) {
    for (std::size_t g = 0; g < 4; ++g)
      EXPECT_EQ(p.at<float>(l.scales2 + (r * l.scale_pitch2 + g) * 4),
                g < 2 ? scale(down, r, g) : 0.0F);
  }
}

TEST(sm90_page, clears_rows_that_a_last_strip_does_not_have) {
  const packed p(bf16_shape(192, 64));
  const page_layout& l = p.page.layout();
  EXPECT_EQ(l.fc2_strips, 2u);
  for (std::uint32_t n = 192; n < 256; ++n) {
    for (std::uint32_t k = 0; k < 64; ++k)
      EXPECT_EQ(p.at<std::uint16_t>(l.fc2 + weight_offset(gemm_format::bf16, 1, n, k)), 0u);
  }
}

TEST(sm90_page, keeps_biases_in_the_order_of_page_rows) {
  const packed p(bf16_shape(128, 64, true));
  const page_layout& l = p.page.layout();
  for (std::uint32_t i = 0; i < 64; ++i) {
    EXPECT_EQ(p.at<float>(l.bias1 + 4 * gate_page_row(i)), p.e.gate_bias[i]);
    EXPECT_EQ(p.at<float>(l.bias1 + 4 * up_page_row(i)), p.e.up_bias[i]);
  }
  for (std::uint32_t i = 0; i < 128; ++i) EXPECT_EQ(p.at<float>(l.bias2 + 4 * i), p.e.down_bias[i]);
  EXPECT_EQ(p.at<float>(l.constants), 1.702F);
  EXPECT_EQ(p.at<float>(l.constants + 4), 1.0F);
  EXPECT_EQ(p.at<float>(l.constants + 8), 1.5F);
}

TEST(sm90_page, writes_an_absent_limit_as_one_that_clamps_nothing) {
  const packed p(fp8_shape(128, 128));
  EXPECT_EQ(p.at<float>(p.page.layout().constants + 8), std::numeric_limits<float>::infinity());
}

TEST(sm90_page, leaves_no_byte_of_the_page_as_it_was) {
  const auto twice = [](const expert_shape& shape) {
    packed p(shape);
    std::vector<std::byte> other(p.page.bytes(), std::byte{0x5A});
    p.page.pack(p.e.tensors(), other);
    return p.bytes == other;
  };
  EXPECT_TRUE(twice(fp8_shape(384, 128)));
  EXPECT_TRUE(twice(bf16_shape(192, 64)));
  EXPECT_TRUE(twice(bf16_shape(192, 192, true)));
}

TEST(sm90_page, names_its_layout_by_what_changes_bytes) {
  EXPECT_EQ(sm90_page(fp8_shape(128, 128)).layout_id(), "sm90tiles.fp8_block");
  EXPECT_EQ(sm90_page(bf16_shape(64, 64)).layout_id(), "sm90tiles.bf16");
  EXPECT_EQ(sm90_page(bf16_shape(64, 64, true)).layout_id(), "sm90tiles.bf16.bias");
}

TEST(sm90_page, takes_as_many_bytes_as_its_weights_and_little_more) {
  const page_layout l = page_layout_of({7168, 2048, gemm_format::fp8, false});
  EXPECT_EQ(l.fc2, std::uint64_t{4096} * 7168);
  EXPECT_EQ(l.scales1, std::uint64_t{3} * 7168 * 2048);
  EXPECT_LT(l.bytes, l.scales1 + 32 * 1024);
}

}  // namespace
}  // namespace moetier::kernels::cuda
