#include "transport/waits/wait_ring.hpp"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/allocation_count.hpp"
#include "transport/waits/flight_file.hpp"
#include "transport/waits/wait_document.hpp"

namespace moetier::transport {
namespace {

wait_record wait_number(std::uint64_t n, std::uint16_t peer = 3) {
  return {.ended = 1000 + n,
          .peer = peer,
          .session = session_id(0xfffffffe),
          .step = n,
          .layer = layer_id(0xfffd),
          .micro_batch = 3,
          .chunk = 0xfffc,
          .attempt = 0xfb,
          .outcome = n % 5 == 4 ? status::timeout : status::ok,
          .bytes_due = ~n,
          .bytes_seen = n << 40,
          .age = 7 * n};
}

TEST(wait_ring, gives_back_what_was_recorded_to_the_last_bit) {
  wait_ring ring;
  EXPECT_TRUE(ring.newest().empty());
  ring.record(wait_number(0));
  ring.record(wait_number(4));
  ASSERT_EQ(ring.newest().size(), 2u);
  EXPECT_EQ(ring.newest()[0], wait_number(0));
  EXPECT_EQ(ring.newest()[1], wait_number(4));
}

TEST(wait_ring, keeps_the_newest_4096_in_order) {
  wait_ring ring;
  for (std::uint64_t n = 0; n < 10'000; ++n) ring.record(wait_number(n));
  const auto waits = ring.newest();
  ASSERT_EQ(waits.size(), 4096u);
  EXPECT_EQ(ring.recorded(), 10'000u);
  for (std::size_t i = 0; i < waits.size(); ++i) ASSERT_EQ(waits[i], wait_number(5904 + i));
}

TEST(wait_ring, recording_allocates_nothing) {
  wait_ring ring;
  const std::size_t before = allocations.load();
  for (std::uint64_t n = 0; n < 10'000; ++n) ring.record(wait_number(n));
  EXPECT_EQ(allocations.load(), before);
}

// Each field follows from `step`: an entry mixed of two waits would show.
TEST(wait_ring, shows_no_wait_that_is_mixed_of_two_while_several_threads_write) {
  wait_ring ring;
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> writers;
  for (int t = 0; t < 3; ++t) {
    writers.emplace_back([&] {
      for (int i = 0; i < 60'000; ++i) ring.record(wait_number(next.fetch_add(1)));
    });
  }
  std::thread reader([&] {
    while (!done) {
      for (const wait_record& w : ring.newest()) ASSERT_EQ(w, wait_number(w.step));
    }
  });
  for (std::thread& w : writers) w.join();
  done = true;
  reader.join();
  const auto waits = ring.newest();
  EXPECT_GE(waits.size(), 4000u);  // an overtaken writer leaves its own out
  for (const wait_record& w : waits) ASSERT_EQ(w, wait_number(w.step));
}

TEST(wait_documents, tell_every_wait_or_sum_them_up_by_peer) {
  wait_ring ring;
  for (std::uint64_t n = 0; n < 5; ++n) {
    ring.record({.ended = 10, .peer = 2, .layer = layer_id(1), .bytes_seen = 8, .age = n});
  }
  ring.record({.ended = 30,
               .peer = 1,
               .session = session_id(6),
               .step = 9,
               .layer = layer_id(4),
               .micro_batch = 1,
               .chunk = 2,
               .attempt = 1,
               .outcome = status::timeout,
               .bytes_due = 64,
               .age = 500});
  const std::string late =
      R"({"ago_ns":70,"peer":1,"session":6,"step":9,"attempt":1,"layer":4,"micro_batch":1,)"
      R"("chunk":2,"bytes_due":64,"bytes_seen":0,"age_ns":500,"status":"TIMEOUT"})";
  EXPECT_EQ(waits_document(ring, "worker", 100),
            R"({"schema":"moetier.waits/1","peers_are":"worker","recorded":6,"kept":6,"peers":[)"
            R"({"peer":1,"waits":1,"bytes_seen":0,"age_ns":{"p50":500,"p99":500,"max":500},)"
            R"("status":{"TIMEOUT":1}},)"
            R"({"peer":2,"waits":5,"bytes_seen":40,"age_ns":{"p50":2,"p99":3,"max":4},)"
            R"("status":{"OK":5}}],"failed":[)" +
                late + "]}\n");
  const std::string flight = flight_document(ring, "worker", 100);
  EXPECT_TRUE(flight.starts_with(
      R"({"schema":"moetier.flight/1","peers_are":"worker","recorded":6,"kept":6,"waits":[{)"));
  EXPECT_TRUE(flight.ends_with(late + "]}\n"));
}

TEST(flight_file, is_written_whole_for_its_owner_and_not_again_at_once) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("moetier_flight_" + std::to_string(::getpid()) + ".json");
  wait_ring ring;
  ring.record(wait_number(1));
  flight_file file(path.string());
  EXPECT_TRUE(file.write(ring, "worker", 5 * k_second));
  struct stat about {};
  ASSERT_EQ(::stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), flight_document(ring, "worker", 5 * k_second));
  EXPECT_FALSE(file.write(ring, "worker", 15 * k_second - 1));
  EXPECT_TRUE(file.write(ring, "worker", 15 * k_second));
  std::filesystem::remove(path);
  EXPECT_FALSE(flight_file("/nowhere/at/all").write(ring, "worker", 1));
}

}  // namespace
}  // namespace moetier::transport
