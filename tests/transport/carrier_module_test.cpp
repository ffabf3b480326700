// Opening a carrier module must leave the process it is opened in as it was, and say what lacks.

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "transport/carrier_module.hpp"

namespace moetier::transport {
namespace {

void own_handler(int) {}

TEST(carrier_module, leaves_the_signal_handlers_alone) {
  constexpr std::array signals{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGHUP};
  // One of ours, the rest as the process found them.
  struct sigaction ours {};
  ours.sa_handler = own_handler;
  ASSERT_EQ(sigaction(SIGHUP, &ours, nullptr), 0);
  std::array<struct sigaction, signals.size()> before{};
  for (std::size_t i = 0; i < signals.size(); ++i)
    ASSERT_EQ(sigaction(signals[i], nullptr, &before[i]), 0);

  auto carrier = open_carrier("ucx", {});
  ASSERT_TRUE(carrier) << carrier.error().text;
  EXPECT_EQ((*carrier)->name(), "ucx.two_sided");
  EXPECT_NE((*carrier)->describe().find("memory"), std::string::npos) << (*carrier)->describe();
  for (std::size_t i = 0; i < signals.size(); ++i) {
    struct sigaction after {};
    ASSERT_EQ(sigaction(signals[i], nullptr, &after), 0);
    EXPECT_EQ(after.sa_handler, before[i].sa_handler) << strsignal(signals[i]);
    EXPECT_EQ(after.sa_flags, before[i].sa_flags) << strsignal(signals[i]);
  }
}

TEST(carrier_module, leaves_the_users_variables_alone) {
  setenv("UCX_LOG_LEVEL", "warn", 1);
  setenv("UCX_SYSV_SEG_SIZE", "9000", 1);
  ASSERT_TRUE(open_carrier("ucx", {}));
  EXPECT_STREQ(std::getenv("UCX_LOG_LEVEL"), "warn");
  EXPECT_STREQ(std::getenv("UCX_SYSV_SEG_SIZE"), "9000");
}

TEST(carrier_module, goes_by_shared_memory_on_one_host_with_and_without_tcp) {
  for (const bool allow_tcp : {true, false}) {
    auto carrier = open_carrier(
        "ucx", {.listen = "127.0.0.1", .checksum_payload = false, .allow_tcp = allow_tcp});
    ASSERT_TRUE(carrier) << carrier.error().text;
    EXPECT_EQ((*carrier)->describe().find("tcp/"), std::string::npos) << (*carrier)->describe();
  }
}

TEST(carrier_module, says_that_descriptors_lack_before_the_library_ends_the_process) {
  ASSERT_TRUE(open_carrier("ucx", {}));  // what it opens once for all is open
  const int next = eventfd(0, EFD_CLOEXEC);
  ASSERT_EQ(close(next), 0);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  for (rlim_t free = 0; free < 40; ++free) {
    const rlimit few{static_cast<rlim_t>(next) + free, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    const auto carrier = open_carrier("ucx", {});
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    if (carrier) {
      EXPECT_GE(free, 16u);
      continue;
    }
    EXPECT_EQ(carrier.error().code, status::unsupported);
    EXPECT_EQ(carrier.error().text,
              "carrier ucx cannot run: fewer than 16 file descriptors are free; raise their limit "
              "(ulimit -n)")
        << free << " were free";
  }
}

TEST(carrier_module, is_looked_for_beside_the_program_and_then_where_the_user_says) {
  setenv("MOETIER_MODULE_PATH", "/first::/second", 1);
  const auto folders = module_folders();
  unsetenv("MOETIER_MODULE_PATH");
  ASSERT_EQ(folders.size(), 5u);
  const auto program = std::filesystem::canonical("/proc/self/exe").parent_path();
  EXPECT_EQ(folders[0], program);
  EXPECT_EQ(folders[1], program.parent_path() / "lib");
  EXPECT_EQ(folders[2], program.parent_path() / "lib" / "moetier");
  EXPECT_EQ(folders[3], "/first");
  EXPECT_EQ(folders[4], "/second");
}

}  // namespace
}  // namespace moetier::transport
