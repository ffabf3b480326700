#include "kernels/reference/cpu_ref.hpp"

#include <cmath>

#include <fmt/core.h>

#include "kernels/activation/activate.hpp"
#include "kernels/cpu_capabilities.hpp"
#include "kernels/entries.hpp"
#include "kernels/limits.hpp"
#include "kernels/math/lane_dot.hpp"
#include "kernels/matrix_view.hpp"

namespace moetier::kernels {
namespace {

constexpr std::size_t aligned(std::size_t bytes) noexcept {
  return (bytes + k_page_alignment - 1) / k_page_alignment * k_page_alignment;
}

// Row `out` of a matrix times x: the one chain that fixes the bits.
float chain(const matrix_view& matrix, std::size_t out, const float* x) noexcept {
  float sum = 0;
  for (std::size_t k = 0; k < matrix.in(); ++k) sum = std::fma(x[k], matrix.value(out, k), sum);
  return sum;
}

// One projection of one row: W x, then the adapter, then the bias.
struct projection {
  matrix_view matrix;
  std::span<const float> bias;
  const float* x;
  lora_pair lora;
  std::uint32_t rank;
  float scale;
  float* low;  // A x, [rank]

  void prepare() const noexcept {
    if (lora.a == nullptr) return;
    for (std::size_t j = 0; j < rank; ++j)
      low[j] = lane_dot(lora.a + j * matrix.in(), x, matrix.in());
  }
  float at(std::size_t out) const noexcept {
    float y = chain(matrix, out, x);
    if (lora.a != nullptr) y = std::fma(scale, lane_dot(lora.b + out * rank, low, rank), y);
    return bias.empty() ? y : y + bias[out];
  }
};

}  // namespace

cpu_ref_backend::cpu_ref_backend(const expert_shape& shape)
    : shape_(shape),
      page_(shape),
      identity_(fmt::format("{}{}", k_cpu_ref_capabilities.identity_prefix,
                            quant_name(shape.format.quant))),
      layout_id_(layout_name("canonical", dtype_name(shape.format.stored), shape)) {}

bool cpu_ref_backend::supports_lora() const noexcept {
  return k_cpu_ref_capabilities.executes_lora(shape_.format.quant);
}

std::size_t cpu_ref_backend::workspace_bytes(std::uint32_t rows,
                                             std::uint32_t k_in) const noexcept {
  if (rows == 0 || k_in == 0) return 0;
  const std::size_t low = supports_lora() ? 2 * k_lora_rank_max : 0;
  return aligned((shape_.intermediate_size + low) * sizeof(float));
}

compute_status cpu_ref_backend::run(const expert_call& call) {
  const auto rows = static_cast<std::uint32_t>(live_rows(call));
  if (call.workspace.size() < workspace_bytes(rows, call.k_in))
    return compute_status::workspace_short;
  if (call.lora != nullptr && !supports_lora()) return compute_status::lora_unsupported;
  if (const compute_status checked = check_entries(call); checked != compute_status::ok)
    return checked;
  if (call.mode == return_mode::partial) clear_rows(call, shape_.hidden_size);
  for (const expert_entry& entry : call.entries) run_entry(call, entry);
  return compute_status::ok;
}

void cpu_ref_backend::run_entry(const expert_call& call, const expert_entry& entry) const noexcept {
  const std::uint32_t hidden = shape_.hidden_size;
  const std::uint32_t units = shape_.intermediate_size;
  const bool has_gate = is_gated(shape_.activation);
  const expert_tensors t = page_.tensors(call.pages[entry.slot]);
  const lora_expert* lora = lora_of(call, entry);
  const lora_expert adapter = lora != nullptr ? *lora : lora_expert{};
  auto* activated = reinterpret_cast<float*>(call.workspace.data());
  float* low = activated + units;  // where there are adapters
  const float* x = input_of(call, entry);
  float* out = output_of(call, entry);

  const auto project = [&](std::span<const std::byte> bytes, std::uint32_t rows,
                           std::uint32_t depth, std::span<const float> bias, const float* in,
                           const lora_pair& pair, float* scratch) {
    const projection made{
        {shape_.format, bytes, rows, depth}, bias, in, pair, adapter.rank, adapter.scale, scratch};
    made.prepare();
    return made;
  };
  // Without a gate the activation reads l alone: up stands in for it.
  const projection up = project(t.up, units, hidden, t.up_bias, x, adapter.up, low);
  const projection gate =
      has_gate ? project(t.gate, units, hidden, t.gate_bias, x, adapter.gate, low + k_lora_rank_max)
               : up;
  for (std::size_t i = 0; i < units; ++i) {
    activated[i] = activate(shape_.activation, has_gate ? gate.at(i) : 0.0F, up.at(i), t.constants);
  }
  const projection down = project(t.down, hidden, units, t.down_bias, activated, adapter.down, low);
  for (std::size_t n = 0; n < hidden; ++n) {
    const float y = down.at(n);
    out[n] = call.mode == return_mode::partial ? std::fma(entry.weight, y, out[n]) : y;
  }
}

}  // namespace moetier::kernels
