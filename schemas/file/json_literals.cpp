#include "schemas/file/json_literals.hpp"

#include <array>
#include <limits>

namespace moetier {
namespace {

struct literal {
  std::string_view word;
  std::string_view number;
  double value;
};

constexpr double k_infinity = std::numeric_limits<double>::infinity();
constexpr std::array k_literals{
    literal{"NaN", "0e0", std::numeric_limits<double>::quiet_NaN()},
    literal{"Infinity", "0e000000", k_infinity},
    literal{"-Infinity", "-0e000000", -k_infinity},
};

bool ends_a_value(char c) noexcept {
  return c == ',' || c == ']' || c == '}' || c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool starts_after(char c) noexcept { return c == ':' || c == '[' || ends_a_value(c); }

// Behind the string that begins at `at`; the end where it does not end.
std::size_t behind_string(std::string_view text, std::size_t at) noexcept {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return text.size();
}

const literal* literal_at(std::string_view text, std::size_t at) noexcept {
  for (const literal& one : k_literals) {
    const std::size_t end = at + one.word.size();
    if (text.substr(at).starts_with(one.word) && (end == text.size() || ends_a_value(text[end])))
      return &one;
  }
  return nullptr;
}

}  // namespace

json_literals replace_literals(std::string_view text) {
  json_literals found{.text = std::string(text), .values = {}};
  std::size_t numbers = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      at = behind_string(text, at);
      continue;
    }
    const bool starts = at == 0 || starts_after(text[at - 1]);
    const literal* const one = starts ? literal_at(text, at) : nullptr;
    if (one != nullptr) {
      found.text.replace(at, one->word.size(), one->number);
      found.values.emplace_back(numbers++, one->value);
      at += one->word.size();
      continue;
    }
    if (starts && (c == '-' || (c >= '0' && c <= '9'))) ++numbers;
    ++at;
  }
  return found;
}

}  // namespace moetier
