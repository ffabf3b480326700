#include "actors/http/http_answer.hpp"

#include <gtest/gtest.h>

namespace moetier::http {
namespace {

TEST(http_answer, has_a_code_and_what_follows_the_head) {
  const auto answer = parse_answer("HTTP/1.1 503 Service Unavailable\r\nA: b\r\n\r\nbody\r\n\r\n!");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->code, 503);
  EXPECT_EQ(answer->body, "body\r\n\r\n!");
}

TEST(http_answer, is_none_without_a_code_of_three_digits_or_the_end_of_its_head) {
  for (const char* bytes :
       {"", "HTTP/1.1 200 OK\r\n", "HTTP/1.0 200 OK\r\n\r\n", "HTTP/1.1 99\r\n\r\n",
        "HTTP/1.1 -12\r\n\r\n", "HTTP/1.1 \r\n\r\n", "HTTP/1.1 20", "HTTP/1.1 012\r\n\r\n"}) {
    EXPECT_FALSE(parse_answer(bytes)) << bytes;
  }
}

}  // namespace
}  // namespace moetier::http
