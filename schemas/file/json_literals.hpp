#pragma once
// The three words for numbers that are not finite (NaN, Infinity, -Infinity) which Python writes
// into its JSON although the grammar has none: found, and replaced by numbers of the same length so
// that a parser goes on and its byte positions stay true. Internal to schemas/file. Thread: any.

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace moetier {

struct json_literals {
  std::string text;
  // Which numbers of the text, counted from 0 in order, stand for which value; ascending.
  std::vector<std::pair<std::size_t, double>> values;
};

// Any text; one that is no JSON stays none.
json_literals replace_literals(std::string_view text);

}  // namespace moetier
