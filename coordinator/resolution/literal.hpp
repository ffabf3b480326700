#pragma once
// Names as operators give them: compared without regard to case, AUTO by default. Thread: any.

#include <string>
#include <string_view>

namespace moetier::coordinator {

inline constexpr std::string_view k_auto = "AUTO";

// ASCII letters only; the rest stays.
inline std::string upper_case(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

}  // namespace moetier::coordinator
