#include "kernels/self_test.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <random>
#include <vector>

#include <fmt/core.h>

#include "kernels/quant/matrix_quantiser.hpp"
#include "kernels/reference/reference_expert.hpp"

namespace moetier::kernels {
namespace {

constexpr std::align_val_t k_alignment{64};

struct aligned_bytes {
  explicit aligned_bytes(std::size_t size)
      : bytes(size),
        data(static_cast<std::byte*>(
            ::operator new[](std::max<std::size_t>(size, 64), k_alignment))) {}
  ~aligned_bytes() { ::operator delete[](data, k_alignment); }
  aligned_bytes(const aligned_bytes&) = delete;
  aligned_bytes& operator=(const aligned_bytes&) = delete;

  std::span<std::byte> span() const noexcept { return {data, bytes}; }

  std::size_t bytes;
  std::byte* data;
};

std::vector<float> random_values(std::size_t count, float scale, std::mt19937& random) {
  std::uniform_real_distribution<float> value(-scale, scale);
  std::vector<float> values(count);
  for (float& v : values) v = value(random);
  return values;
}

std::vector<std::byte> plain_matrix(dtype stored, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * dtype_bytes(stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (stored == dtype::f32) {
      std::memcpy(bytes.data() + 4 * i, &values[i], 4);
    } else {
      const std::uint16_t bits =
          stored == dtype::bf16 ? bf16_from_f32(values[i]) : f16_from_f32(values[i]);
      std::memcpy(bytes.data() + 2 * i, &bits, 2);
    }
  }
  return bytes;
}

expected<std::vector<std::byte>> random_matrix(const weight_format& format, std::uint32_t out,
                                               std::uint32_t in, std::mt19937& random) {
  const auto values =
      random_values(std::size_t{out} * in, 1.0F / std::sqrt(static_cast<float>(in)), random);
  if (format.quant == quant_kind::none) return plain_matrix(format.stored, values);
  auto quantised = quantise_matrix(format, values, out, in);
  if (!quantised) return unexpected_error(quantised.error());
  return std::move(quantised->bytes);
}

struct random_expert {
  std::vector<std::byte> gate, up, down;
  std::vector<float> gate_bias, up_bias, down_bias;

  expert_tensors tensors(const activation_constants& constants) const {
    return {.gate = gate,
            .up = up,
            .down = down,
            .gate_bias = gate_bias,
            .up_bias = up_bias,
            .down_bias = down_bias,
            .constants = constants};
  }
};

expected<random_expert> make_expert(const expert_shape& shape, std::mt19937& random) {
  const std::uint32_t hidden = shape.hidden_size;
  const std::uint32_t inner = shape.intermediate_size;
  random_expert e;
  const auto fill = [&](std::vector<std::byte>& into, std::uint32_t out,
                        std::uint32_t in) -> expected<void> {
    auto made = random_matrix(shape.format, out, in, random);
    if (!made) return unexpected_error(made.error());
    into = std::move(*made);
    return {};
  };
  if (is_gated(shape.activation)) {
    if (auto done = fill(e.gate, inner, hidden); !done) return unexpected_error(done.error());
  }
  if (auto done = fill(e.up, inner, hidden); !done) return unexpected_error(done.error());
  if (auto done = fill(e.down, hidden, inner); !done) return unexpected_error(done.error());
  if (shape.bias) {
    if (is_gated(shape.activation)) e.gate_bias = random_values(inner, 0.5F, random);
    e.up_bias = random_values(inner, 0.5F, random);
    e.down_bias = random_values(hidden, 0.5F, random);
  }
  return e;
}

unexpected_error failed(const Backend& candidate, std::string_view what) {
  return fail(reason::backend_unresolved,
              fmt::format("{} fails its self-test: {}", candidate.identity(), what));
}

}  // namespace

expected<void> self_test(Backend& candidate, const activation_constants& constants,
                         const page_placer& place) {
  const expert_shape& shape = candidate.shape();
  const std::size_t hidden = shape.hidden_size;
  std::mt19937 random(20261130);
  const auto expert = make_expert(shape, random);
  if (!expert) return unexpected_error(expert.error());
  const expert_tensors tensors = expert->tensors(constants);
  const aligned_bytes page(candidate.page_bytes());
  candidate.pack_page(tensors, page.span());
  expected<const std::byte*> placed = page.data;
  if (place) placed = place(page.span());
  if (!placed) return unexpected_error(placed.error());

  const std::vector<float> x = random_values(k_self_test_rows * hidden, 2.0F, random);
  std::vector<float> y(k_self_test_rows * hidden);
  const aligned_bytes workspace(candidate.workspace_bytes(k_self_test_rows, 1));
  const row_region in{.base = reinterpret_cast<const std::byte*>(x.data()),
                      .pitch_bytes = hidden * sizeof(float),
                      .rows_live = k_self_test_rows};
  const out_region out{.base = reinterpret_cast<std::byte*>(y.data()),
                       .pitch_bytes = hidden * sizeof(float)};
  constexpr float k_weight = 0.75F;
  std::vector<expert_entry> entries(k_self_test_rows);
  for (std::uint32_t r = 0; r < k_self_test_rows; ++r) entries[r] = {.row = r, .weight = k_weight};
  const std::byte* pages[] = {*placed};

  std::vector<double> truth(hidden);
  for (const return_mode mode : {return_mode::partial, return_mode::exact}) {
    if (mode == return_mode::exact && !candidate.row_invariant()) continue;
    std::fill(y.begin(), y.end(), std::nanf(""));
    const compute_status done = candidate.run({.in = {&in, 1},
                                               .out = {&out, 1},
                                               .entries = entries,
                                               .pages = pages,
                                               .k_in = 1,
                                               .mode = mode,
                                               .workspace = workspace.span()});
    if (done != compute_status::ok) return failed(candidate, "it refuses eight rows");
    const double weight = mode == return_mode::partial ? double{k_weight} : 1.0;
    double squares = 0;  // of the difference, and of the truth
    double squares_due = 0;
    for (std::uint32_t r = 0; r < k_self_test_rows; ++r) {
      reference_expert(shape, tensors, std::span(x).subspan(r * hidden, hidden), truth);
      double largest = 0;
      for (const double t : truth) largest = std::max(largest, std::abs(t));
      for (std::size_t h = 0; h < hidden; ++h) {
        const double difference = std::abs(weight * truth[h] - double{y[r * hidden + h]});
        squares += difference * difference;
        squares_due += weight * truth[h] * weight * truth[h];
        if (candidate.operands() != operand_form::f32 && std::isfinite(difference)) continue;
        if (difference <= k_self_test_tolerance * (1 + largest)) continue;
        return failed(candidate, fmt::format("row {} column {} is {:g}, the reference says {:g}", r,
                                             h, double{y[r * hidden + h]}, weight * truth[h]));
      }
    }
    const double norm = std::sqrt(squares / std::max(squares_due, 1e-300));
    if (candidate.operands() != operand_form::f32 && norm > self_test_norm(candidate.operands()))
      return failed(candidate, fmt::format("results differ from the reference's by {:.2g} of their "
                                           "norm; at most {:g}",
                                           norm, self_test_norm(candidate.operands())));
  }
  return {};
}

}  // namespace moetier::kernels
