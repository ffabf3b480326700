// What a process that is asked for a page sends back. (Requests are civetweb's to parse.)

#include "actors/http/http_answer.hpp"

#include "tests/fuzz/fuzz_target.hpp"

namespace moetier::fuzz {

void run(std::span<const std::uint8_t> bytes) {
  const std::string_view text = text_of(bytes);
  const auto answer = http::parse_answer(text);
  if (!answer) return;
  check(answer->code >= 100 && answer->code <= 999, "a code beyond its range");
  check(text.ends_with(answer->body) && answer->body.size() + 16 <= text.size(),
        "a body that did not come");
}

std::vector<input> seeds() {
  return {input_of("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"ready\":true}"),
          input_of("HTTP/1.1 503 x\r\n\r\n"), input_of("HTTP/1.0 200 OK\r\n\r\n")};
}

}  // namespace moetier::fuzz
