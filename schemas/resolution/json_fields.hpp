#pragma once
// Reads and writes a value's fields as JSON; handed to walk(). For .cpp files of this folder and
// those that build documents around the values: it shows the JSON library. The reader trusts
// nothing: an unknown key, a missing one, another type, an unknown word, a number out of range, too
// long a list or a text that is no printable ASCII is a problem, and the first is kept. Thread:
// owner.

#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "schemas/file/printable.hpp"
#include "schemas/resolution/limits.hpp"
#include "schemas/resolution/words.hpp"

namespace moetier::resolution {

class json_writer final {
 public:
  using json = nlohmann::ordered_json;

  template <class T>
  void operator()(std::string_view name, const T& value) {
    object_[std::string(name)] = of(value);
  }

  json take() { return std::move(object_); }

 private:
  template <class T>
  static json of(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      return std::string(word_of(value));
    } else {
      return value;
    }
  }
  template <class T>
  static json of(const std::optional<T>& value) {
    return value ? of(*value) : json(nullptr);
  }
  static json of(const std::map<std::string, std::string>& table) {
    json object = json::object();
    for (const auto& [key, value] : table) object[key] = value;
    return object;
  }

  json object_ = json::object();
};

class json_reader final {
 public:
  using json = nlohmann::json;

  // `place` names the object in sentences: "environment".
  json_reader(const json& object, std::string_view place) : object_(object), place_(place) {
    if (!object.is_object()) refuse(fmt::format("{} is no object", place));
  }

  template <class T>
  void operator()(std::string_view name, T& value) {
    if (!problem_.empty()) return;
    known_.emplace(name);
    const auto at = object_.find(std::string(name));
    if (at == object_.end()) return refuse(fmt::format("{} needs {}", place_, name));
    take(fmt::format("{} {}", place_, name), *at, value);
  }
  // An unknown field may be null or left out.
  template <class T>
  void operator()(std::string_view name, std::optional<T>& value) {
    if (!problem_.empty()) return;
    known_.emplace(name);
    const auto at = object_.find(std::string(name));
    if (at == object_.end() || at->is_null()) return value.reset();
    take(fmt::format("{} {}", place_, name), *at, value.emplace());
  }

  // The same for a table: what it does not name is unknown.
  void operator()(std::string_view name, std::map<std::string, std::string>& table) {
    if (!problem_.empty()) return;
    known_.emplace(name);
    const auto at = object_.find(std::string(name));
    if (at == object_.end() || at->is_null()) return table.clear();
    take(fmt::format("{} {}", place_, name), *at, table);
  }

  // A key that walk() does not visit.
  void also(std::string_view name) { known_.emplace(name); }
  void refuse(std::string what) {
    if (problem_.empty()) problem_ = std::move(what);
  }

  // The first problem, unknown keys last; empty = the value was read.
  std::string ended() {
    if (problem_.empty()) {
      for (const auto& [key, value] : object_.items()) {
        if (!known_.contains(key))
          refuse(fmt::format("unknown key {} in {}", printable(key), place_));
      }
    }
    return problem_;
  }

  // For documents around the values: the same checks on values of any type.
  void take(const std::string& what, const json& from, bool& value) {
    if (!from.is_boolean()) return refuse(fmt::format("{} must be true or false", what));
    value = from.get<bool>();
  }
  template <std::unsigned_integral Integer>
  requires(!std::same_as<Integer, bool>) void take(const std::string& what, const json& from,
                                                   Integer& value) {
    constexpr auto k_most = std::numeric_limits<Integer>::max();
    if (!from.is_number_unsigned() || from.get<std::uint64_t>() > k_most)
      return refuse(fmt::format("{} must be a number from 0 to {}", what, k_most));
    value = static_cast<Integer>(from.get<std::uint64_t>());
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void take(const std::string& what, const json& from, Enum& value) {
    std::string allowed;
    for (unsigned i = 0; i < words_of(Enum{}); ++i) {
      const std::string_view word = word_of(static_cast<Enum>(i));
      if (from.is_string() && from.get_ref<const std::string&>() == word) {
        value = static_cast<Enum>(i);
        return;
      }
      allowed += fmt::format("{}{}", i == 0 ? "" : ", ", word);
    }
    refuse(fmt::format("{} must be one of {}", what, allowed));
  }
  void take(const std::string& what, const json& from, std::string& value) {
    if (!from.is_string()) return refuse(fmt::format("{} must be a text", what));
    const auto& text = from.get_ref<const std::string&>();
    if (text.size() > k_text_bytes_max)
      return refuse(
          fmt::format("{} has {} bytes; at most {}", what, text.size(), k_text_bytes_max));
    for (const char c : text) {
      if (c < 0x20 || c > 0x7e) return refuse(fmt::format("{} is no printable ASCII", what));
    }
    value = text;
  }
  template <class T>
  void take(const std::string& what, const json& from, std::vector<T>& values) {
    if (!from.is_array() || from.size() > k_list_max)
      return refuse(fmt::format("{} must be a list of at most {}", what, k_list_max));
    values.clear();
    for (std::size_t i = 0; i < from.size() && problem_.empty(); ++i)
      take(fmt::format("{} entry {}", what, i), from[i], values.emplace_back());
  }
  void take(const std::string& what, const json& from, std::map<std::string, std::string>& table) {
    if (!from.is_object() || from.size() > k_list_max)
      return refuse(fmt::format("{} must be an object of at most {} texts", what, k_list_max));
    table.clear();
    for (const auto& [key, text] : from.items()) {
      std::string name;
      take(fmt::format("a key of {}", what), key, name);
      if (!problem_.empty()) return;
      take(fmt::format("{} {}", what, name), text, table[name]);
    }
  }

 private:
  const json& object_;
  std::string place_;
  std::set<std::string> known_;
  std::string problem_;
};

}  // namespace moetier::resolution
