#include "actors/roles/listening.hpp"

#include <gtest/gtest.h>

namespace moetier::roles {
namespace {

TEST(listening, a_line_tells_what_was_told) {
  const listening l{
      .role = "worker", .name = "worker@\"1\xff", .http = "127.0.0.1:7403", .pid = 77};
  const std::string line = to_line(l);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto back = listening_from(line);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->role, "worker");
  EXPECT_EQ(back->http, l.http);
  EXPECT_EQ(back->pid, 77);
  EXPECT_TRUE(back->rpc.empty());
}

TEST(listening, other_lines_are_not_it) {
  for (const char* line :
       {"", "ready", "{}", "[1]", "{\"schema\":\"moetier.listening.2\"}", "{\"schema\":7}",
        "{\"schema\":\"moetier.listening/1\",\"pid\":\"x\"}"}) {
    EXPECT_FALSE(listening_from(line)) << line;
  }
}

}  // namespace
}  // namespace moetier::roles
