#include "workers/weights/expert_finite.hpp"

#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "schemas/base/assert.hpp"

namespace moetier::workers {
namespace {

// NaN and infinity are what has all bits of the exponent. Without an early exit, so that it runs as
// wide as the machine is.
template <class Bits>
std::size_t count_nonfinite(std::span<const std::byte> bytes, Bits exponent) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < bytes.size() / sizeof(Bits); ++i) {
    Bits bits{};
    std::memcpy(&bits, bytes.data() + i * sizeof(Bits), sizeof(Bits));
    count += (bits & exponent) == exponent ? 1 : 0;
  }
  return count;
}

std::size_t count_nonfinite(dtype stored, std::span<const std::byte> bytes) {
  switch (stored) {
    case dtype::bf16: return count_nonfinite<std::uint16_t>(bytes, 0x7f80);
    case dtype::f16: return count_nonfinite<std::uint16_t>(bytes, 0x7c00);
    default: return count_nonfinite<std::uint32_t>(bytes, 0x7f800000);
  }
}

}  // namespace

expected<void> check_expert_finite(dtype stored, layer_id layer, expert_id expert,
                                   const expert_buffers& matrices) {
  MOETIER_ASSERT(stored == dtype::bf16 || stored == dtype::f16 || stored == dtype::f32);
  const std::size_t width = stored == dtype::f32 ? 4 : 2;
  for (const auto& [name, bytes] :
       {std::pair<std::string_view, std::span<const std::byte>>("gate", matrices.gate),
        {"up", matrices.up},
        {"down", matrices.down}}) {
    const std::size_t found = count_nonfinite(stored, bytes);
    if (found == 0) continue;
    std::size_t first = 0;
    while (count_nonfinite(stored, bytes.subspan(first * width, width)) == 0) ++first;
    return fail(reason::weight_mismatch,
                fmt::format("layer {} expert {} projection {}", layer.value, expert.value, name),
                fmt::format("{} elements that are not finite, the first at {}", found, first),
                "finite numbers; model.nonfinite=serve computes with them");
  }
  return {};
}

}  // namespace moetier::workers
