#pragma once
// The words of the enumerations that stand in resolution documents: for each type how many values
// it has and what each is called, so that one reader and one writer serve all of them.
// Thread: any (constants).

#include <cstdint>
#include <string_view>

#include "schemas/base/dtype.hpp"
#include "schemas/model/activation.hpp"
#include "schemas/model/model_description.hpp"
#include "schemas/model/routing_rule.hpp"
#include "schemas/model/weight_format.hpp"

namespace moetier::resolution {

enum class answer_mode : std::uint8_t { partial = 0, exact = 1 };
enum class device_kind : std::uint8_t { cpu = 0, cuda = 1 };
enum class scheduler_wish : std::uint8_t { any = 0, external_comm = 1, fused_comm = 2 };

constexpr unsigned words_of(quant_kind) noexcept { return k_quant_kinds; }
inline std::string_view word_of(quant_kind value) noexcept { return quant_name(value); }

constexpr unsigned words_of(activation_kind) noexcept { return k_activation_kinds; }
inline std::string_view word_of(activation_kind value) noexcept { return activation_name(value); }

constexpr unsigned words_of(routing_method) noexcept { return k_routing_methods; }
inline std::string_view word_of(routing_method value) noexcept {
  return routing_method_name(value);
}

// The three that rows and unquantised weights may have.
constexpr unsigned words_of(dtype) noexcept { return 3; }
constexpr std::string_view word_of(dtype value) noexcept { return dtype_name(value); }

constexpr unsigned words_of(weight_point) noexcept { return 2; }
constexpr std::string_view word_of(weight_point value) noexcept {
  return value == weight_point::input ? "input" : "output";
}

constexpr unsigned words_of(answer_mode) noexcept { return 2; }
constexpr std::string_view word_of(answer_mode value) noexcept {
  return value == answer_mode::exact ? "exact" : "partial";
}

constexpr unsigned words_of(device_kind) noexcept { return 2; }
constexpr std::string_view word_of(device_kind value) noexcept {
  return value == device_kind::cuda ? "cuda" : "cpu";
}

constexpr unsigned words_of(scheduler_wish) noexcept { return 3; }
constexpr std::string_view word_of(scheduler_wish value) noexcept {
  switch (value) {
    case scheduler_wish::external_comm: return "external_comm";
    case scheduler_wish::fused_comm: return "fused_comm";
    case scheduler_wish::any: break;
  }
  return "any";
}

}  // namespace moetier::resolution
