#pragma once
// Settings that are lists of words: one text, by commas, with any spaces around them. Thread: any
// (pure functions).

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace moetier::config {

inline std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string_view word = text.substr(0, comma);
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    if (!word.empty()) words.emplace_back(word);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return words;
}

inline bool has_word(std::string_view text, std::string_view wanted) {
  const auto words = words_of(text);
  return std::find(words.begin(), words.end(), wanted) != words.end();
}

}  // namespace moetier::config
