#include "workers/weights/progress_bar.hpp"

#include <array>
#include <cstdlib>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace moetier::workers {
namespace {

// What comes out of a descriptor up to `end`, or until nothing has come for `patience_ms`: a
// terminal hands over in pieces, and later.
std::string read_until(int descriptor, char end, int patience_ms) {
  std::string text;
  pollfd waiting{.fd = descriptor, .events = POLLIN, .revents = 0};
  while (!text.ends_with(end) && ::poll(&waiting, 1, patience_ms) == 1) {
    std::array<char, 256> bytes{};
    const ssize_t got = ::read(descriptor, bytes.data(), bytes.size());
    if (got <= 0) break;
    text.append(bytes.data(), static_cast<std::size_t>(got));
  }
  return text;
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
  EXPECT_EQ(read_until(pipe[0], '\n', 0), "");
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
  EXPECT_EQ(read_until(master, '\n', 10000),
            "\rw [###############...............]  50 %  1 of 2 experts"
            "\rw [##############################] 100 %  2 of 2 experts\r\n");
  ::close(terminal);
  ::close(master);
}

}  // namespace
}  // namespace moetier::workers
