#include "kernels/reference/cpu_ref.hpp"

#include <cmath>
#include <cstring>

#include "kernels/entries.hpp"
#include "kernels/limits.hpp"
#include "kernels/math/house_math.hpp"
#include "kernels/tensor_values.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::kernels {
namespace {

constexpr std::size_t aligned(std::size_t bytes) noexcept {
  return (bytes + k_page_alignment - 1) / k_page_alignment * k_page_alignment;
}

// Row `out` of a [*, depth] matrix times x: the one chain that fixes the bits.
float chain(std::span<const std::byte> matrix, dtype stored, std::size_t out, const float* x,
            std::size_t depth) noexcept {
  float sum = 0;
  for (std::size_t k = 0; k < depth; ++k)
    sum = std::fma(x[k], value_at(matrix, stored, out * depth + k), sum);
  return sum;
}

}  // namespace

std::string_view cpu_ref_backend::layout_id() const noexcept {
  switch (shape_.format.stored) {
    case dtype::bf16: return "rows.bf16";
    case dtype::f16: return "rows.f16";
    default: return "rows.f32";
  }
}

std::size_t cpu_ref_backend::matrix_bytes() const noexcept {
  return std::size_t{shape_.hidden_size} * shape_.intermediate_size *
         dtype_bytes(shape_.format.stored);
}

std::size_t cpu_ref_backend::page_bytes() const noexcept { return aligned(3 * matrix_bytes()); }

void cpu_ref_backend::pack_page(const expert_tensors& tensors, std::span<std::byte> page) const {
  const std::size_t bytes = matrix_bytes();
  MOETIER_ASSERT(page.size() == page_bytes());
  MOETIER_ASSERT(tensors.gate.size() == bytes && tensors.up.size() == bytes &&
                 tensors.down.size() == bytes);
  std::memcpy(page.data(), tensors.gate.data(), bytes);
  std::memcpy(page.data() + bytes, tensors.up.data(), bytes);
  std::memcpy(page.data() + 2 * bytes, tensors.down.data(), bytes);
  std::memset(page.data() + 3 * bytes, 0, page.size() - 3 * bytes);
}

std::size_t cpu_ref_backend::workspace_bytes(std::uint32_t rows,
                                             std::uint32_t k_in) const noexcept {
  return rows == 0 || k_in == 0 ? 0 : aligned(shape_.intermediate_size * sizeof(float));
}

compute_status cpu_ref_backend::run(const expert_call& call) {
  const auto rows = static_cast<std::uint32_t>(live_rows(call));
  if (call.workspace.size() < workspace_bytes(rows, call.k_in))
    return compute_status::workspace_short;
  if (const compute_status checked = check_entries(call); checked != compute_status::ok)
    return checked;
  if (call.mode == return_mode::partial) clear_rows(call, shape_.hidden_size);

  const std::size_t hidden = shape_.hidden_size;
  const std::size_t units = shape_.intermediate_size;
  const std::size_t bytes = matrix_bytes();
  auto* activated = reinterpret_cast<float*>(call.workspace.data());
  for (const expert_entry& entry : call.entries) {
    const std::byte* page = call.pages[entry.slot];
    const std::span gate(page, bytes);
    const std::span up(page + bytes, bytes);
    const std::span down(page + 2 * bytes, bytes);
    const float* x = input_of(call, entry);
    float* out = output_of(call, entry);
    for (std::size_t i = 0; i < units; ++i)
      activated[i] = house_swiglu(chain(gate, shape_.format.stored, i, x, hidden),
                                  chain(up, shape_.format.stored, i, x, hidden));
    for (std::size_t n = 0; n < hidden; ++n) {
      const float y = chain(down, shape_.format.stored, n, activated, units);
      out[n] = call.mode == return_mode::partial ? std::fma(entry.weight, y, out[n]) : y;
    }
  }
  return compute_status::ok;
}

}  // namespace moetier::kernels
