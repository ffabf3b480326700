#include "schemas/file/printable.hpp"

namespace moetier {

std::string printable(std::string_view text) {
  constexpr std::string_view k_cut = "...";
  constexpr std::size_t k_tail = (k_printable_max - k_cut.size()) / 2;
  constexpr std::size_t k_head = k_printable_max - k_cut.size() - k_tail;
  std::string shown;
  if (text.size() <= k_printable_max) {
    shown = text;
  } else {
    shown.append(text.substr(0, k_head)).append(k_cut).append(text.substr(text.size() - k_tail));
  }
  for (char& c : shown) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return shown;
}

}  // namespace moetier
