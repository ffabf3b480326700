#pragma once
// The files of the status page, as they lie in actors/http/page: part of the program, so that a
// page needs nothing from disk or from elsewhere. Thread: any (constants).

#include <span>
#include <string_view>

namespace moetier::http {

struct embedded_file {
  std::string_view name;  // "page.css"
  std::string_view text;
};

std::span<const embedded_file> page_files() noexcept;

}  // namespace moetier::http
