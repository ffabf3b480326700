#pragma once
// The bytes that a server sent before it closed the connection, as an answer: HTTP/1.1 with a code,
// a head and a body that ends with the bytes. Nothing received is trusted. Thread: any.

#include <optional>
#include <string>
#include <string_view>

namespace moetier::http {

struct http_answer {
  int code = 0;  // 100 to 999
  std::string body;
};

// Nothing where the bytes are no such answer.
std::optional<http_answer> parse_answer(std::string_view bytes);

}  // namespace moetier::http
