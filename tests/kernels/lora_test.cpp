// Adapters of a call: right values, rows without one untouched, both CPU backends equal in bits,
// and quantised backends refuse.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "kernels/matrix_view.hpp"
#include "kernels/reference/reference_expert.hpp"
#include "tests/kernels/expert_case.hpp"

namespace moetier::kernels {
namespace {

constexpr float k_canary = -12345.0F;

struct adapter {
  std::vector<float> gate_a, gate_b, up_a, up_b, down_a, down_b;
  lora_expert expert;

  adapter(const expert_shape& s, std::uint32_t rank, std::mt19937& random) {
    const std::size_t hidden = s.hidden_size;
    const std::size_t units = s.intermediate_size;
    const auto fill = [&](std::vector<float>& v, std::size_t count) {
      v = random_rows(count, random);
      for (float& x : v) x *= 0.05F;
      return v.data();
    };
    expert.gate = {fill(gate_a, rank * hidden), fill(gate_b, units * rank)};
    expert.up = {fill(up_a, rank * hidden), fill(up_b, units * rank)};
    expert.down = {fill(down_a, rank * units), fill(down_b, hidden * rank)};
    expert.rank = rank;
    expert.scale = 2.0F / static_cast<float>(rank);
  }
};

// W x + scale * B (A x) + bias in double.
std::vector<double> projected(const expert_shape& shape, std::span<const std::byte> bytes,
                              std::uint32_t out, std::uint32_t in, std::span<const float> bias,
                              const std::vector<double>& x, const lora_pair& pair,
                              const lora_expert* lora) {
  const matrix_view matrix(shape.format, bytes, out, in);
  std::vector<double> y(out);
  std::vector<double> low(lora != nullptr ? lora->rank : 0);
  if (lora != nullptr && pair.a != nullptr) {
    for (std::size_t j = 0; j < low.size(); ++j) {
      for (std::size_t k = 0; k < in; ++k) low[j] += x[k] * double{pair.a[j * in + k]};
    }
  }
  for (std::size_t n = 0; n < out; ++n) {
    for (std::size_t k = 0; k < in; ++k) y[n] += x[k] * double{matrix.value(n, k)};
    if (lora != nullptr && pair.b != nullptr) {
      for (std::size_t j = 0; j < low.size(); ++j)
        y[n] += double{lora->scale} * low[j] * double{pair.b[n * low.size() + j]};
    }
    if (!bias.empty()) y[n] += double{bias[n]};
  }
  return y;
}

std::vector<double> oracle(const expert_shape& shape, const expert& e, std::span<const float> row,
                           const lora_expert* lora) {
  const std::uint32_t hidden = shape.hidden_size;
  const std::uint32_t units = shape.intermediate_size;
  const bool gated = is_gated(shape.activation);
  const lora_expert none;
  const lora_expert& a = lora != nullptr ? *lora : none;
  const std::vector<double> x(row.begin(), row.end());
  std::vector<double> mid = projected(shape, e.up, units, hidden, e.up_bias, x, a.up, lora);
  std::vector<double> gate(units);
  if (gated) gate = projected(shape, e.gate, units, hidden, e.gate_bias, x, a.gate, lora);
  for (std::size_t i = 0; i < units; ++i)
    mid[i] = reference_activation(shape.activation, gate[i], mid[i], e.constants);
  return projected(shape, e.down, hidden, units, e.down_bias, mid, a.down, lora);
}

// Slot 0 and 1 hold experts; adapter 0 touches slot 0 only, adapter 1 both (slot 1 without down).
struct lora_case {
  expert_shape shape;
  std::mt19937 random{81};
  expert experts[2];
  adapter a, b, c;
  std::vector<const lora_expert*> table;
  std::vector<float> x;
  std::vector<std::int32_t> adapters;
  std::vector<expert_entry> entries;

  lora_case(const expert_shape& s, std::size_t rows)
      : shape(s),
        experts{random_expert(s, random), random_expert(s, random)},
        a(s, 4, random),
        b(s, 11, random),
        c(s, 256, random) {
    c.expert.down = {};
    table = {&a.expert, nullptr, &b.expert, &c.expert};
    x = random_rows(rows * s.hidden_size, random);
    for (std::size_t r = 0; r < rows; ++r) {
      adapters.push_back(static_cast<std::int32_t>(r % 3) - 1);
      entries.push_back({.row = static_cast<std::uint32_t>(r),
                         .slot = static_cast<std::uint16_t>(r / 3 % 2),
                         .weight = 1.0F});
    }
    std::vector<expert_entry> scratch(rows);
    std::vector<std::uint32_t> counts(2);
    group_entries(entries, scratch, counts);
  }

  const lora_expert* of(const expert_entry& e) const {
    return adapters[e.row] < 0 ? nullptr
                               : table[static_cast<std::size_t>(adapters[e.row]) * 2 + e.slot];
  }

  // Empty where the backend refuses.
  std::vector<float> run(std::string_view name, bool adapted, unsigned threads = 1) {
    const auto backend = backend_of(name, shape, threads);
    page_table pages(*backend);
    for (const expert& e : experts) pages.add(e);
    std::vector<float> y(x.size(), k_canary);
    const row_region in = rows_in(x, shape.hidden_size);
    const out_region out = rows_out(y, shape.hidden_size);
    const std::int32_t* rows[] = {adapters.data()};
    const lora_call lora{.adapter_of = rows, .experts = table};
    const compute_status status = run_on(*backend, {.in = {&in, 1},
                                                    .out = {&out, 1},
                                                    .entries = entries,
                                                    .pages = pages.table(),
                                                    .k_in = 1,
                                                    .mode = return_mode::exact,
                                                    .workspace = {},
                                                    .lora = adapted ? &lora : nullptr});
    if (status == compute_status::ok) return y;
    EXPECT_EQ(status, compute_status::lora_unsupported);
    EXPECT_TRUE(equal_bits(y, std::vector<float>(y.size(), k_canary)));
    return {};
  }
};

const expert_shape k_shapes[] = {
    {37, 21, {}, activation_kind::swiglu, false},
    {37, 21, {.stored = dtype::f32}, activation_kind::swiglu_bias, true},
    {64, 48, {.stored = dtype::f16}, activation_kind::relu2, true},
    {33, 17, {}, activation_kind::gelu, false},
};

TEST(an_adapter, adds_its_low_rank_product_inside_both_layers) {
  for (const std::string_view name : {"cpu_ref", "cpu_avx2"}) {
    if (!runs_here(name)) continue;
    for (const expert_shape& shape : k_shapes) {
      lora_case c(shape, 20);
      const std::vector<float> y = c.run(name, true);
      ASSERT_EQ(y.size(), c.x.size());
      const std::size_t hidden = shape.hidden_size;
      for (const expert_entry& e : c.entries) {
        const auto truth = oracle(shape, c.experts[e.slot],
                                  std::span(c.x).subspan(e.row * hidden, hidden), c.of(e));
        double most = 0;
        for (const double t : truth) most = std::max(most, std::fabs(t));
        for (std::size_t n = 0; n < hidden; ++n)
          ASSERT_NEAR(y[e.row * hidden + n], truth[n], 2e-6 * (1 + most)) << name << " " << e.row;
      }
    }
  }
}

TEST(an_adapter, leaves_the_bits_of_rows_without_one_alone_and_changes_the_others) {
  for (const std::string_view name : {"cpu_ref", "cpu_avx2"}) {
    if (!runs_here(name)) continue;
    for (const expert_shape& shape : k_shapes) {
      lora_case c(shape, 20);
      const std::vector<float> with = c.run(name, true);
      const std::vector<float> without = c.run(name, false);
      const std::size_t hidden = shape.hidden_size;
      for (const expert_entry& e : c.entries) {
        const auto a = std::span(with).subspan(e.row * hidden, hidden);
        const auto b = std::span(without).subspan(e.row * hidden, hidden);
        EXPECT_EQ(equal_bits(a, b), c.of(e) == nullptr) << name << " row " << e.row;
      }
    }
  }
}

TEST(an_adapter, gives_equal_bits_on_both_cpu_backends_for_any_threads) {
  if (!runs_here("cpu_avx2")) GTEST_SKIP() << "cpu_avx2 cannot run on this processor";
  for (const expert_shape& shape : k_shapes) {
    lora_case c(shape, 70);
    const std::vector<float> truth = c.run("cpu_ref", true);
    EXPECT_TRUE(equal_bits(c.run("cpu_avx2", true), truth));
    EXPECT_TRUE(equal_bits(c.run("cpu_avx2", true, 3), truth));
  }
  lora_case large({300, 200, {}, activation_kind::swiglu, false}, 70);
  EXPECT_TRUE(equal_bits(large.run("cpu_avx2", true, 3), large.run("cpu_ref", true)));
}

TEST(an_adapter, is_refused_over_quantised_weights_before_anything_is_written) {
  for (const std::string_view name : {"cpu_ref", "cpu_avx2", "reference"}) {
    if (!runs_here(name)) continue;
    for (unsigned quant = 1; quant < k_quant_kinds; ++quant) {
      lora_case c(
          {128, 128, {.quant = static_cast<quant_kind>(quant)}, activation_kind::swiglu, false}, 4);
      EXPECT_TRUE(c.run(name, true).empty()) << name << " " << quant;
    }
  }
}

}  // namespace
}  // namespace moetier::kernels
