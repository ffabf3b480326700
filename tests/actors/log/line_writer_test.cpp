#include "actors/log/line_writer.hpp"

#include <chrono>
#include <memory>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace moetier {
namespace {

using clock = std::chrono::steady_clock;

// A pipe whose reader reads when it is told to.
class line_writer_test : public testing::Test {
 protected:
  line_writer_test() {
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    fcntl(ends[1], F_SETPIPE_SZ, 4096);
  }
  ~line_writer_test() override {
    for (const int end : ends) {
      if (end >= 0) close(end);
    }
  }
  std::string read_some() const {
    std::string text(std::size_t{64} * 1024, '\0');
    const ssize_t n = read(ends[0], text.data(), text.size());
    text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return text;
  }
  int ends[2] = {-1, -1};
};

TEST_F(line_writer_test, a_line_is_there_when_write_returns) {
  line_writer out(ends[1]);
  for (const std::string line : {"one\n", "two\n"}) {
    out.write(line);
    EXPECT_EQ(read_some(), line);
  }
}

TEST_F(line_writer_test, a_reader_who_stops_holds_up_nobody_and_misses_what_has_no_room) {
  auto out = std::make_unique<line_writer>(ends[1]);
  const std::string line = std::string(1023, 'x') + "\n";
  const auto begun = clock::now();
  for (int i = 0; i < 400; ++i) out->write(line);
  EXPECT_LT(clock::now() - begun, std::chrono::seconds(5)) << "one wait, not one for each line";
  EXPECT_GE(out->dropped(), 400u - 256u - 5u);
  EXPECT_LE(out->dropped(), 400u - 256u + 1u);
  const std::uint64_t kept = 400 - out->dropped();
  std::uint64_t bytes = 0;
  while (bytes < kept * line.size()) bytes += read_some().size();
  EXPECT_EQ(bytes, kept * line.size());
  out->write("again\n");
  EXPECT_EQ(read_some(), "again\n");
}

TEST_F(line_writer_test, ends_while_nobody_reads) {
  const auto begun = clock::now();
  {
    line_writer out(ends[1]);
    for (int i = 0; i < 20; ++i) out.write(std::string(1023, 'x') + "\n");
  }
  EXPECT_LT(clock::now() - begun, std::chrono::seconds(5));
  ends[0] = ends[1] = -1;  // its thread is in there for as long as this process lives
}

TEST(line_writer, counts_what_a_full_disk_does_not_take) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  {
    line_writer out(full);
    out.write("lost\n");
    EXPECT_EQ(out.dropped(), 1u);
  }
  close(full);
}

}  // namespace
}  // namespace moetier
