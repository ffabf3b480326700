// A link that cannot be started, as the process has used up what that takes: an error of the
// caller's, who goes on as before.

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

#include "transport/client/link/tier_link.hpp"

namespace moetier::client {
namespace {

constexpr const char* k_nobody = "127.0.0.1:1";

// Whether connecting is refused for want of descriptors, with so many left. In a child process.
bool is_refused_with_descriptors(int left) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int next = ::open("/dev/null", O_RDONLY);
    ::close(next);
    const auto count = static_cast<rlim_t>(next + left);
    const rlimit limit{.rlim_cur = count, .rlim_max = count};
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) ::_exit(2);
    const auto refused = connect(k_nobody, 100 * k_millisecond, first_contact::patient);
    const bool is_named = !refused && refused.error().code == status::unavailable &&
                          refused.error().text.find("out of file descriptors") != std::string::npos;
    ::_exit(is_named && ::open("/dev/null", O_RDONLY) == (left == 0 ? -1 : next) ? 0 : 1);
  }
  int how = -1;
  EXPECT_EQ(::waitpid(child, &how, 0), child);
  return how == 0;
}

TEST(link_start, without_descriptors_is_an_error_and_leaves_none_behind) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the undefined behaviour sanitizer needs descriptors of its own to look at types";
#endif
  EXPECT_TRUE(is_refused_with_descriptors(0));  // for the loop itself
  EXPECT_TRUE(is_refused_with_descriptors(1));  // for what wakes it
  EXPECT_TRUE(is_refused_with_descriptors(2));  // for a socket
}

TEST(link_start, without_a_thread_is_an_error_and_leaves_the_callers_signals) {
  pthread_attr_t before;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  pthread_attr_t endless;
  pthread_attr_init(&endless);
  pthread_attr_setstacksize(&endless, std::size_t{1} << 50);  // no process has room for it
  ASSERT_EQ(pthread_setattr_default_np(&endless), 0);
  const auto refused = connect(k_nobody, k_second);
  EXPECT_EQ(pthread_setattr_default_np(&before), 0);
  pthread_attr_destroy(&endless);
  pthread_attr_destroy(&before);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text, "the coordinator is not reached: out of threads");
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  EXPECT_FALSE(sigismember(&blocked, SIGTERM) == 1 || sigismember(&blocked, SIGINT) == 1);
}

}  // namespace
}  // namespace moetier::client
