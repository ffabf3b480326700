#pragma once
// Bounds of what a resolution reads from files and messages. A value at the limit works; limit + 1
// is a typed error. Thread: any.

#include <cstddef>

namespace moetier::resolution {

inline constexpr std::size_t k_document_bytes_max = 1024 * 1024;  // one JSON document
inline constexpr std::size_t k_text_bytes_max = 1024;             // one text, printable ASCII
inline constexpr std::size_t k_list_max = 4096;                   // entries of a list or a table

}  // namespace moetier::resolution
