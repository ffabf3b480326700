// What a service manager hears: words in order, each once, on a real datagram socket.

#include "actors/process/service_notice.hpp"

#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace moetier {
namespace {

TEST(service_notice, ready_is_told_once_and_words_when_they_change) {
  readiness_words words;
  EXPECT_EQ(words.next(false, {"loading", "no plan"}), "STATUS=not ready: loading; no plan");
  EXPECT_EQ(words.next(false, {"loading", "no plan"}), std::nullopt);
  EXPECT_EQ(words.next(true, {}), "READY=1\nSTATUS=serving");
  EXPECT_EQ(words.next(true, {}), std::nullopt);
  EXPECT_EQ(words.next(false, {"lost"}), "STATUS=not ready: lost");
  EXPECT_EQ(words.next(true, {}), "STATUS=serving");  // systemd has heard READY
}

TEST(service_notice, a_reason_cannot_speak_for_itself) {
  readiness_words words;
  EXPECT_EQ(words.next(false, {"x\nREADY=1"}), "STATUS=not ready: x READY=1");
}

// A manager's socket in the abstract name space.
class manager final {
 public:
  manager() : name_("@moetier-notice-test-" + std::to_string(::getpid())) {
    fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::memcpy(at.sun_path, name_.data(), name_.size());
    at.sun_path[0] = '\0';
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&at), bytes), 0);
    ::setenv("NOTIFY_SOCKET", name_.c_str(), 1);
  }
  ~manager() {
    ::close(fd_);
    ::unsetenv("NOTIFY_SOCKET");
  }
  std::string hear() const {
    char text[1024];
    const ssize_t got = ::recv(fd_, text, sizeof text, 0);
    return got > 0 ? std::string(text, static_cast<std::size_t>(got)) : std::string();
  }

 private:
  std::string name_;
  int fd_ = -1;
};

TEST(service_notice, it_speaks_to_the_socket_that_was_named_and_hides_it_from_children) {
  const manager m;
  service_notice notice;
  EXPECT_TRUE(notice.wanted());
  EXPECT_EQ(std::getenv("NOTIFY_SOCKET"), nullptr);
  notice.readiness(true, {});
  notice.readiness(true, {});
  notice.stopping();
  EXPECT_EQ(m.hear(), "READY=1\nSTATUS=serving");
  EXPECT_EQ(m.hear(), "STOPPING=1");
  EXPECT_EQ(m.hear(), "");
}

TEST(service_notice, without_a_manager_nothing_happens) {
  ::unsetenv("NOTIFY_SOCKET");
  service_notice none;
  EXPECT_FALSE(none.wanted());
  none.readiness(true, {});
  none.stopping();
  for (const char* bad : {"", "x", "relative", "/nowhere/at/all"}) {
    ::setenv("NOTIFY_SOCKET", bad, 1);
    service_notice unreachable;
    EXPECT_FALSE(unreachable.wanted()) << bad;
  }
}

}  // namespace
}  // namespace moetier
