// A single product over panels: the bits of each element are those of one chain of fma over
// ascending k, whatever the number of rows, the tails of N and K, and the format.
#include "kernels/cpu/panel_gemm.hpp"

#include <gtest/gtest.h>

#include "kernels/matrix_view.hpp"
#include "tests/kernels/expert_case.hpp"

namespace moetier::kernels {
namespace {

constexpr float k_canary = -12345.0F;
constexpr std::uint32_t k_rows_max = k_block_rows_max;

struct product_case {
  weight_format format;
  std::uint32_t outputs, depth;
  std::vector<std::byte> matrix;
  std::vector<float> rows;

  product_case(const weight_format& f, std::uint32_t n, std::uint32_t k, std::mt19937& random)
      : format(f),
        outputs(n),
        depth(k),
        matrix(random_matrix(f, n, k, random)),
        rows(random_rows(std::size_t{k_rows_max} * k, random)) {}

  // Written out apart from the product, on std::fma. `parts` chains an element, added at the end.
  std::vector<float> chained(std::uint32_t parts = 1) const {
    const matrix_view w(format, matrix, outputs, depth);
    std::vector<float> values(std::size_t{outputs} * depth);
    for (std::size_t n = 0; n < outputs; ++n) {
      for (std::size_t k = 0; k < depth; ++k) values[n * depth + k] = w.value(n, k);
    }
    std::vector<float> out(std::size_t{k_rows_max} * outputs);
    for (std::size_t r = 0; r < k_rows_max; ++r) {
      for (std::size_t n = 0; n < outputs; ++n) {
        float total = 0;
        for (std::uint32_t part = 0; part < parts; ++part) {
          float sum = 0;
          for (std::size_t k = depth * part / parts; k < depth * (part + 1) / parts; ++k)
            sum = std::fma(rows[r * depth + k], values[n * depth + k], sum);
          total += sum;
        }
        out[r * outputs + n] = total;
      }
    }
    return out;
  }
};

// The product of the last `count` rows; what lies behind the results must stay.
std::vector<float> product_of(const product_case& c, const panel_gemm& gemm,
                              const aligned_bytes& panels, std::uint32_t count) {
  const std::size_t results = std::size_t{count} * c.outputs;
  std::vector<float> out(results + 16, k_canary);
  aligned_bytes workspace(gemm.workspace_bytes(count));
  std::memset(workspace.data(), 0xff, workspace.span().size());
  gemm.run(panels.data(), c.rows.data() + std::size_t{k_rows_max - count} * c.depth, count,
           out.data(), workspace.span());
  for (std::size_t i = results; i < out.size(); ++i) EXPECT_EQ(out[i], k_canary) << i;
  out.resize(results);
  return out;
}

void expect_chains(const product_case& c, std::initializer_list<std::uint32_t> counts) {
  const panel_gemm gemm(k_panel_kernels_avx2, c.format, c.outputs, c.depth);
  aligned_bytes panels(gemm.weight_bytes());
  gemm.pack(c.matrix, panels.span());
  const std::vector<float> truth = c.chained();
  for (const std::uint32_t count : counts) {
    EXPECT_TRUE(equal_bits(product_of(c, gemm, panels, count),
                           std::span(truth).subspan(std::size_t{k_rows_max - count} * c.outputs)))
        << count << " rows, N " << c.outputs << " K " << c.depth;
  }
}

class a_panel_gemm : public testing::Test {
 protected:
  void SetUp() override {
    if (!runs_here("cpu_avx2")) GTEST_SKIP() << "cpu_avx2 cannot run on this processor";
  }
  std::mt19937 random_{71};
};

TEST_F(a_panel_gemm, sums_one_ascending_chain_for_every_number_of_rows) {
  const product_case c({}, 88, 130, random_);
  const panel_gemm gemm(k_panel_kernels_avx2, c.format, c.outputs, c.depth);
  aligned_bytes panels(gemm.weight_bytes());
  gemm.pack(c.matrix, panels.span());
  const std::vector<float> truth = c.chained();
  for (std::uint32_t count = 1; count <= k_rows_max; ++count) {
    ASSERT_TRUE(equal_bits(product_of(c, gemm, panels, count),
                           std::span(truth).subspan(std::size_t{k_rows_max - count} * c.outputs)))
        << count << " rows";
  }
}

TEST_F(a_panel_gemm, does_so_for_tails_of_outputs_and_depth) {
  for (const dtype stored : {dtype::bf16, dtype::f16, dtype::f32}) {
    const weight_format format{.stored = stored};
    for (const std::uint32_t outputs : {1u, 7u, 8u, 16u, 17u, 24u, 56u, 71u, 104u}) {
      for (const std::uint32_t depth : {1u, 2u, 3u, 4u, 5u, 63u, 66u})
        expect_chains({format, outputs, depth, random_}, {1, 2, 3, 4, 5, 6, 7, 16, 64});
    }
  }
}

// More depth than one block of K, which several tiles go through one after the other.
TEST_F(a_panel_gemm, does_so_for_more_depth_than_a_block) {
  for (const std::uint32_t depth : {2047u, 2048u, 2049u, 2053u, 4101u})
    expect_chains({{}, 40, depth, random_}, {1, 2, 3, 4, 6, 13});
}

TEST_F(a_panel_gemm, does_so_for_quantised_weights) {
  for (const quant_kind quant : {quant_kind::fp8_tensor, quant_kind::fp8_block, quant_kind::mxfp8,
                                 quant_kind::mxfp4, quant_kind::nvfp4, quant_kind::int4_g128}) {
    for (const std::uint32_t outputs : {128u, 256u})
      expect_chains({{.quant = quant}, outputs, 384, random_}, {1, 2, 3, 4, 6, 7, 17});
  }
}

// The tests above would see K split in two: that gives other bits nearly everywhere.
TEST_F(a_panel_gemm, would_be_caught_splitting_the_depth) {
  const product_case c({}, 768, 512, random_);
  const std::vector<float> one = c.chained(1);
  const std::vector<float> two = c.chained(2);
  std::size_t differing = 0;
  for (std::size_t n = 0; n < c.outputs; ++n) differing += one[n] != two[n] ? 1 : 0;
  EXPECT_GT(differing, c.outputs * 3 / 4);
}

}  // namespace
}  // namespace moetier::kernels
