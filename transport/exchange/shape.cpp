#include "transport/exchange/shape.hpp"

#include <string_view>

#include "transport/exchange/limits.hpp"

namespace moetier::transport {
namespace {

expected<void> check_range(std::string_view name, std::uint32_t given, std::uint32_t least,
                           std::uint32_t most) {
  if (given >= least && given <= most) return {};
  return fail(reason::invalid_argument, name, given, fmt::format("{} to {}", least, most));
}

expected<void> check_stride(std::string_view name, std::uint32_t given) {
  if (given > 0 && given <= k_row_bytes_max && given % 16 == 0) return {};
  return fail(reason::invalid_argument, name, given,
              fmt::format("a multiple of 16, at most {}", k_row_bytes_max));
}

}  // namespace

expected<void> check_shape(const source_shape& shape) {
  if (auto ok = check_range("rows_max", shape.rows_max, 1, k_rows_max); !ok) return ok;
  if (auto ok = check_stride("hidden_stride", shape.hidden_stride); !ok) return ok;
  if (auto ok = check_range("top_k", shape.top_k, 1, k_top_k_max); !ok) return ok;
  if (auto ok = check_stride("return_stride", shape.return_stride); !ok) return ok;
  if (auto ok =
          check_range("return_rows_max", shape.return_rows_max, shape.rows_max, k_return_rows_max);
      !ok)
    return ok;
  return check_range("banks", shape.banks, k_banks_min, k_banks_max);
}

}  // namespace moetier::transport
