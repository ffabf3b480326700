#include "workers/weights/progress_bar.hpp"

#include <array>
#include <cstdlib>

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace moetier::workers {
namespace {

// What is waiting in a descriptor; "" for nothing.
std::string waiting(int descriptor) {
  ::fcntl(descriptor, F_SETFL, O_NONBLOCK);
  std::array<char, 4096> bytes{};
  const ssize_t got = ::read(descriptor, bytes.data(), bytes.size());
  return got > 0 ? std::string(bytes.data(), static_cast<std::size_t>(got)) : "";
}

TEST(progress_bar, shows_share_and_numbers) {
  EXPECT_EQ(progress_line("weights", 0, 256),
            "weights [..............................]   0 %  0 of 256 experts");
  EXPECT_EQ(progress_line("weights", 128, 256),
            "weights [###############...............]  50 %  128 of 256 experts");
  EXPECT_EQ(progress_line("weights", 256, 256),
            "weights [##############################] 100 %  256 of 256 experts");
  EXPECT_EQ(progress_line("weights", 0, 0),
            "weights [##############################] 100 %  0 of 0 experts");
}

TEST(progress_bar, is_silent_where_no_terminal_is) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  {
    progress_bar bar("weights", pipe[1]);
    bar.update(1, 2);
  }
  EXPECT_EQ(waiting(pipe[0]), "");
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(progress_bar, redraws_one_line_on_a_terminal_and_ends_it) {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(master, 0);
  ASSERT_EQ(::grantpt(master), 0);
  ASSERT_EQ(::unlockpt(master), 0);
  const int terminal = ::open(::ptsname(master), O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  {
    progress_bar bar("w", terminal);
    bar.update(1, 2);
    bar.update(1, 2);
    bar.update(2, 2);
  }
  EXPECT_EQ(waiting(master),
            "\rw [###############...............]  50 %  1 of 2 experts"
            "\rw [##############################] 100 %  2 of 2 experts\r\n");
  ::close(terminal);
  ::close(master);
}

}  // namespace
}  // namespace moetier::workers
