#pragma once
// Writes a value's fields as canonical text: "name=value" a line, texts with their length in front,
// so that no two different values give one text; an unknown field is "?". Handed to walk(). Part of
// the protocol: fingerprints and hashes are made over it. Thread: owner.

#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "schemas/resolution/words.hpp"

namespace moetier::resolution {

class canonical_fields final {
 public:
  explicit canonical_fields(std::string_view title) : text_(fmt::format("{}\n", title)) {}

  template <class T>
  void operator()(std::string_view name, const T& value) {
    text_ += name;
    text_ += '=';
    put(value);
    text_ += '\n';
  }

  std::string take() { return std::move(text_); }

 private:
  void put(bool value) { text_ += value ? "true" : "false"; }
  template <std::unsigned_integral Integer>
  requires(!std::same_as<Integer, bool>) void put(Integer value) {
    text_ += fmt::format("{}", value);
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void put(Enum value) { text_ += word_of(value); }
  void put(const std::string& value) { text_ += fmt::format("{}:{}", value.size(), value); }
  template <class T>
  void put(const std::optional<T>& value) {
    if (value) {
      put(*value);
    } else {
      text_ += '?';
    }
  }
  template <class T>
  void put(const std::vector<T>& values) {
    text_ += fmt::format("{}[", values.size());
    for (const T& value : values) {
      put(value);
      text_ += ',';
    }
    text_ += ']';
  }
  void put(const std::map<std::string, std::string>& table) {
    text_ += fmt::format("{}{{", table.size());
    for (const auto& [key, value] : table) {
      put(key);
      text_ += '>';
      put(value);
      text_ += ',';
    }
    text_ += '}';
  }

  std::string text_;
};

}  // namespace moetier::resolution
