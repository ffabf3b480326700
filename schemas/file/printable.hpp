#pragma once
// Foreign text made fit for a sentence: whatever is not printable ASCII becomes '?', and more than
// 64 characters are cut in the middle, since names of tensors differ at their ends. Thread: any.

#include <cstddef>
#include <string>
#include <string_view>

namespace moetier {

inline constexpr std::size_t k_printable_max = 64;  // characters

std::string printable(std::string_view text);

}  // namespace moetier
