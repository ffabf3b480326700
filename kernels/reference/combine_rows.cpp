#include "kernels/reference/combine_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "schemas/base/dtype.hpp"

namespace moetier::kernels {
namespace {

using cuda::combine_args;
using cuda::out_type;

// Entry numbers of row r in ascending (slot, position).
std::vector<std::size_t> entries_of(const combine_args& args, std::size_t r) {
  std::vector<std::size_t> entries;
  for (std::size_t e = r * args.k_in; e < (r + 1) * args.k_in; ++e) {
    if (args.slot_ids[e] >= 0) entries.push_back(e);
  }
  std::stable_sort(entries.begin(), entries.end(), [&](std::size_t a, std::size_t b) {
    return args.slot_ids[a] < args.slot_ids[b];
  });
  return entries;
}

float y_of(const combine_args& args, std::size_t entry, std::size_t column) {
  const std::byte* const row = args.y + entry * args.y_pitch_bytes;
  if (args.y_as == out_type::f32) {
    float value = 0;
    std::memcpy(&value, row + column * sizeof value, sizeof value);
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, row + column * sizeof bits, sizeof bits);
  return f32_from_bf16(bits);
}

void put(const combine_args& args, std::size_t r, std::size_t column, float sum) {
  std::byte* const row = args.out + r * args.out_pitch_bytes;
  const std::uint16_t bits = bf16_from_f32(sum);
  if (args.out_as == out_type::f32) {
    std::memcpy(row + column * sizeof sum, &sum, sizeof sum);
  } else {
    std::memcpy(row + column * sizeof bits, &bits, sizeof bits);
  }
}

}  // namespace

cuda::launch_status reference::combine_rows(const combine_args& args) {
  if (args.rows_cap == 0) return {};
  if (!can_combine_rows(args)) return {.error = cuda::launch_status::k_refused};
  for (std::size_t r = 0; r < std::min(*args.rows_live, args.rows_cap); ++r) {
    const auto entries = entries_of(args, r);
    for (std::size_t c = 0; c < args.hidden_size; ++c) {
      float sum = 0;
      for (const std::size_t e : entries) sum = std::fma(args.weights[e], y_of(args, e, c), sum);
      put(args, r, c, sum);
    }
  }
  return {};
}

}  // namespace moetier::kernels
