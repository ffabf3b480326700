#include "workers/weights/adapter_config.hpp"

#include <array>
#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "kernels/backend.hpp"
#include "schemas/file/input_file.hpp"
#include "schemas/file/printable.hpp"
#include "schemas/file/strict_json.hpp"

namespace moetier::workers {
namespace {

using nlohmann::json;

constexpr std::size_t k_config_bytes_max = std::size_t{1} << 20;

// Keys that change the mathematics unless they are absent, null, false, empty or as named here.
struct plain_value {
  const char* key;
  const char* value;
};
constexpr std::array k_plain{
    plain_value{"peft_type", "LORA"},
    plain_value{"bias", "none"},
    plain_value{"lora_bias", ""},
    plain_value{"fan_in_fan_out", ""},
    plain_value{"rank_pattern", ""},
    plain_value{"alpha_pattern", ""},
    plain_value{"modules_to_save", ""},
    plain_value{"layer_replication", ""},
    plain_value{"trainable_token_indices", ""},
    plain_value{"target_parameters", ""},
    plain_value{"alora_invocation_tokens", ""},
    plain_value{"arrow_config", ""},
};

bool says_nothing(const json& value) {
  return value.is_null() || (value.is_boolean() && !value.get<bool>()) ||
         (value.is_structured() && value.empty()) ||
         (value.is_string() && value.get_ref<const std::string&>().empty());
}

std::string shown(const json& value) {
  constexpr std::size_t k_most = 64;
  return printable(value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, k_most));
}

unexpected_error refuse(std::string_view key, const json& value, std::string_view allowed) {
  return fail(reason::lora_unsupported,
              fmt::format("{} is {}; supported: {}", printable(key), shown(value), allowed));
}

}  // namespace

expected<adapter_config> read_adapter_config(const std::string& file) {
  const auto text = input_file::read_text(file, k_config_bytes_max);
  if (!text) return unexpected_error(text.error());
  const auto document = parse_json(*text, file);
  if (!document) return unexpected_error(document.error());
  if (!document->is_object()) return fail(reason::file_malformed, file, "it is no JSON object");
  for (const auto& [key, value] : document->items()) {
    // Variants of the method come as use_rslora, use_dora and the like.
    if (key.starts_with("use_") && !says_nothing(value)) return refuse(key, value, "false");
    for (const plain_value& plain : k_plain) {
      if (key != plain.key || says_nothing(value) || value == json(plain.value)) continue;
      return refuse(key, value, *plain.value != '\0' ? plain.value : "none");
    }
  }
  const json rank = document->value("r", json());
  const std::string ranks = fmt::format("1 to {}", kernels::k_lora_rank_max);
  if (!rank.is_number_unsigned() || rank.get<std::uint64_t>() < 1 ||
      rank.get<std::uint64_t>() > kernels::k_lora_rank_max)
    return refuse("r", rank, ranks);
  adapter_config config{.rank = rank.get<std::uint32_t>()};
  const json alpha = document->value("lora_alpha", json());
  if (!alpha.is_number()) return refuse("lora_alpha", alpha, "a finite number");
  config.scale = static_cast<float>(alpha.get<double>() / config.rank);
  if (!std::isfinite(config.scale)) return refuse("lora_alpha", alpha, "a finite number");
  return config;
}

}  // namespace moetier::workers
