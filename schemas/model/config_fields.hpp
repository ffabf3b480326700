#pragma once
// The fields of one configuration as config.cpp and its kin read them: typed, bounded, refused by
// name with reason::model_unsupported. A key with dots reaches into objects. Internal to
// schemas/model. Thread: any.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "schemas/base/error.hpp"

namespace moetier {

unexpected_error unsupported_field(std::string_view field, std::string_view value,
                                   std::string_view supported);

// A value's JSON; NaN, Infinity or -Infinity where it is no finite number.
std::string json_text(const nlohmann::json& value);

// A value as a sentence shows it; nullptr is an absent key.
std::string shown_value(const nlohmann::json* value);

struct count_range {
  std::uint32_t least = 0;
  std::uint32_t most = 0;
};

class config_fields final {
 public:
  // `prefix`: what sentences put before a key. `values` outlives this.
  config_fields(const nlohmann::json& values, std::string_view prefix)
      : values_(values), prefix_(prefix) {}

  std::string name(std::string_view key) const;

  // nullptr when the key is absent or null, which mean the same to most keys.
  const nlohmann::json* find(std::string_view key) const;
  bool stands(std::string_view key) const;  // null or not

  // A whole number; `absent` where the key may be left out. A list of equal numbers is one.
  expected<std::uint32_t> count(std::string_view key, count_range range,
                                std::optional<std::uint32_t> absent = {}) const;
  // Several keys for one count: those that stand must agree with the family's `own`, which is named
  // when none does. `known` may hold `own` too.
  expected<std::uint32_t> agreed(std::string_view own, std::span<const std::string_view> known,
                                 count_range range, std::string_view what) const;
  expected<bool> flag(std::string_view key, bool absent) const;
  // A finite number as f32; nothing where absent.
  expected<std::optional<float>> real(std::string_view key) const;
  // Where the key stands it must hold one of the texts.
  expected<void> one_of(std::string_view key, std::span<const std::string_view> texts,
                        bool told = false) const;

 private:
  const nlohmann::json* locate(std::string_view key) const;

  const nlohmann::json& values_;
  std::string_view prefix_;
};

// Moves a result into `into`, or its error into `problem`.
template <class T>
bool take(expected<T> from, T& into, error& problem) {
  if (from) {
    into = std::move(*from);
  } else {
    problem = std::move(from.error());
  }
  return from.has_value();
}
inline bool take(expected<void> from, error& problem) {
  if (!from) problem = std::move(from.error());
  return from.has_value();
}

}  // namespace moetier
