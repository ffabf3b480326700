// Where each weight lies in a page, word by word.
#include "kernels/cpu/panel_page.hpp"

#include <gtest/gtest.h>

#include "kernels/tensor_values.hpp"
#include "tests/kernels/expert_case.hpp"

namespace moetier::kernels {
namespace {

float page_value(const panel_page& page, const aligned_bytes& bytes, const panel_strip& strip,
                 std::size_t panel, std::size_t k, std::size_t lane, bool high) {
  const std::byte* at =
      bytes.data() + strip.offset_bytes + panel * strip.panel_bytes + k * page.depth_bytes();
  if (page.format() == panel_format::bf16) {
    std::uint32_t word = 0;
    std::memcpy(&word, at + 4 * lane, 4);
    return f32_from_bf16(static_cast<std::uint16_t>(high ? word >> 16 : word));
  }
  float value = 0;
  std::memcpy(&value, at + 4 * (lane + (high ? 8 : 0)), 4);
  return value;
}

TEST(panel_page, pairs_gates_with_ups_and_columns_with_columns_eight_further) {
  std::mt19937 random(31);
  for (const auto& [hidden, units] : {std::pair{1u, 1u}, {16u, 8u}, {37u, 21u}, {20u, 9u}}) {
    for (const dtype stored : {dtype::bf16, dtype::f16, dtype::f32}) {
      const expert_shape shape{
          .hidden_size = hidden, .intermediate_size = units, .format = {.stored = stored}};
      const panel_page page(shape);
      const expert e = random_expert(shape, random);
      aligned_bytes bytes(page.bytes());
      page.pack(e.tensors(), bytes.span());
      ASSERT_EQ(page.fc1().panels, (units + 7) / 8);
      ASSERT_EQ(page.fc2().panels, (hidden + 15) / 16);
      for (std::size_t p = 0; p < page.fc1().panels; ++p) {
        for (std::size_t k = 0; k < hidden; ++k) {
          for (std::size_t lane = 0; lane < 8; ++lane) {
            const std::size_t unit = p * 8 + lane;
            const bool real = unit < units;
            ASSERT_EQ(page_value(page, bytes, page.fc1(), p, k, lane, false),
                      real ? value_at(e.gate, stored, unit * hidden + k) : 0.0F);
            ASSERT_EQ(page_value(page, bytes, page.fc1(), p, k, lane, true),
                      real ? value_at(e.up, stored, unit * hidden + k) : 0.0F);
          }
        }
      }
      for (std::size_t p = 0; p < page.fc2().panels; ++p) {
        for (std::size_t k = 0; k < units; ++k) {
          for (std::size_t lane = 0; lane < 16; ++lane) {
            const std::size_t column = p * 16 + lane;
            ASSERT_EQ(page_value(page, bytes, page.fc2(), p, k, lane % 8, lane >= 8),
                      column < hidden ? value_at(e.down, stored, column * units + k) : 0.0F);
          }
        }
      }
    }
  }
}

TEST(panel_page, has_the_size_of_the_weights_where_the_shape_fits_whole_panels) {
  EXPECT_EQ(panel_page({.hidden_size = 2048, .intermediate_size = 768}).bytes(),
            std::size_t{3} * 2048 * 768 * 2);
  EXPECT_EQ(
      panel_page({.hidden_size = 64, .intermediate_size = 16, .format = {.stored = dtype::f16}})
          .bytes(),
      std::size_t{3} * 64 * 16 * 4);
}

TEST(panel_page, is_the_same_for_equal_values_stored_as_f16_and_as_f32) {
  const expert_shape half{
      .hidden_size = 19, .intermediate_size = 11, .format = {.stored = dtype::f16}};
  expert_shape full = half;
  full.format.stored = dtype::f32;
  std::mt19937 random(32);
  const expert e = random_expert(half, random);
  const auto widened = [](const std::vector<std::byte>& tensor) {
    std::vector<std::byte> out(2 * tensor.size());
    for (std::size_t i = 0; i < tensor.size() / 2; ++i) {
      const float value = f32_from_f16(bits16_at(tensor, i));
      std::memcpy(&out[4 * i], &value, 4);
    }
    return out;
  };
  const expert wide{.gate = widened(e.gate), .up = widened(e.up), .down = widened(e.down)};
  const panel_page a(half);
  const panel_page b(full);
  ASSERT_EQ(a.layout_id(), b.layout_id());
  ASSERT_EQ(a.bytes(), b.bytes());
  aligned_bytes in_half(a.bytes());
  aligned_bytes in_full(b.bytes());
  a.pack(e.tensors(), in_half.span());
  b.pack(wide.tensors(), in_full.span());
  EXPECT_EQ(std::memcmp(in_half.data(), in_full.data(), a.bytes()), 0);
}

}  // namespace
}  // namespace moetier::kernels
