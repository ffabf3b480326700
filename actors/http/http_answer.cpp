#include "actors/http/http_answer.hpp"

#include <charconv>

namespace moetier::http {

std::optional<http_answer> parse_answer(std::string_view bytes) {
  constexpr std::string_view k_version = "HTTP/1.1 ";
  constexpr std::size_t k_digits = 3;
  const std::size_t head_end = bytes.find("\r\n\r\n");
  if (head_end == std::string_view::npos || !bytes.starts_with(k_version)) return std::nullopt;
  const std::string_view code = bytes.substr(k_version.size(), k_digits);
  http_answer answer;
  const auto read = std::from_chars(code.data(), code.data() + code.size(), answer.code);
  if (read.ec != std::errc() || read.ptr != code.data() + k_digits || answer.code < 100)
    return std::nullopt;
  answer.body = bytes.substr(head_end + 4);
  return answer;
}

}  // namespace moetier::http
