#include "workers/weights/dialect.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "workers/weights/dialects/mixtral.hpp"
#include "workers/weights/dialects/qwen3_moe.hpp"

namespace moetier::workers {
namespace {

constexpr std::array k_dialects{k_dialect_mixtral, k_dialect_qwen3_moe};

bool take_text(std::string_view& rest, std::string_view text) {
  if (!rest.starts_with(text)) return false;
  rest.remove_prefix(text.size());
  return true;
}

// A number as these files write it, without leading zeros, and the dot behind it.
std::optional<std::uint32_t> take_number(std::string_view& rest) {
  std::uint32_t value = 0;
  const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  const auto digits = static_cast<std::size_t>(end - rest.data());
  if (problem != std::errc{} || (rest.front() == '0' && digits > 1)) return std::nullopt;
  rest.remove_prefix(digits);
  if (!take_text(rest, ".")) return std::nullopt;
  return value;
}

}  // namespace

const dialect* find_dialect(std::string_view model_type) noexcept {
  const auto at = std::find_if(k_dialects.begin(), k_dialects.end(),
                               [&](const dialect& d) { return d.model_type == model_type; });
  return at == k_dialects.end() ? nullptr : &*at;
}

tensor_role role_of(const dialect& names, std::string_view stem, std::string_view tensor) noexcept {
  using kind = tensor_role::kind;
  std::string_view rest = tensor;
  if (!take_text(rest, stem)) return {};
  const auto layer = take_number(rest);
  if (!layer) return {};
  tensor_role role{.layer = *layer};
  if (rest == names.router) {
    role.what = kind::router;
  } else if (take_text(rest, names.experts)) {
    const auto expert = take_number(rest);
    const auto part = std::find(names.projections.begin(), names.projections.end(), rest);
    const bool known = expert && part != names.projections.end();
    role.what = known ? kind::expert : kind::unknown_expert;
    if (known) {
      role.expert = *expert;
      role.part = static_cast<projection>(part - names.projections.begin());
    }
  }
  return role;
}

std::string expert_tensor_name(const dialect& names, std::string_view stem, layer_id layer,
                               std::uint32_t expert, projection part) {
  return fmt::format("{}{}.{}{}.{}", stem, layer.value, names.experts, expert,
                     names.projections[static_cast<std::size_t>(part)]);
}

std::string router_tensor_name(const dialect& names, std::string_view stem, layer_id layer) {
  return fmt::format("{}{}.{}", stem, layer.value, names.router);
}

}  // namespace moetier::workers
