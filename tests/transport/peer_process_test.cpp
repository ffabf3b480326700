// Carriers between processes: what only a second process can show. Large rows, a worker that is
// killed or stopped in the middle, and the silence of the standard error while that happens.

#include <chrono>
#include <optional>
#include <set>

#include <gtest/gtest.h>

#include "tests/transport/child_process.hpp"
#include "tests/transport/tier_of_halves.hpp"
#include "tests/transport/peer_lines.hpp"

#ifndef MOETIER_PEER
#error "the path of the peer program"
#endif

namespace moetier::transport {
namespace {

class peer_process_test : public testing::TestWithParam<const char*> {
 protected:
  void start(const char* mode) {
    child.emplace(std::vector<std::string>{MOETIER_PEER, GetParam(), mode});
    const member_address address = from_hex(child->read_line());
    ASSERT_FALSE(address.empty()) << "the peer did not start";
    child->write_line(to_hex(s.half->address()));
    ASSERT_EQ(child->read_line(), "attached");
    auto attached = s.half->attach_worker(k_peer_worker, address);
    ASSERT_TRUE(attached) << attached.error().text;
  }

  void SetUp() override {
    auto opened = open_carrier(GetParam(), {});
    ASSERT_TRUE(opened) << opened.error().text;
    carrier = std::move(*opened);
    s.identity = k_peer_source;
    s.shape = k_peer_shape;
    auto half = carrier->make_source({.identity = k_peer_source, .shape = k_peer_shape});
    ASSERT_TRUE(half) << half.error().text;
    s.half = std::move(*half);
  }

  returned collect() {
    returned r;
    EXPECT_TRUE(happens([&] {
      if (s.poll_one(r)) return true;
      s.half->wait(std::chrono::nanoseconds(0), std::chrono::seconds(1));
      return s.poll_one(r);
    }));
    return r;
  }

  std::unique_ptr<Communication> carrier;
  test_source s;
  std::optional<child_process> child;
};

INSTANTIATE_TEST_SUITE_P(carriers, peer_process_test, testing::Values("shared_memory", "ucx"),
                         [](const auto& about) { return std::string(about.param); });

TEST_P(peer_process_test, carries_rows_of_all_sizes_there_and_back) {
  start("echo");
  std::uint64_t step = 0;
  for (const std::uint32_t rows : {0u, 1u, 2u, 3u, 16u, 255u, 4096u, 1u}) {
    const auto seed = static_cast<std::uint32_t>(++step);
    const exchange_ticket ticket = s.send(k_peer_worker.worker, step, rows, seed);
    const returned r = collect();
    ASSERT_EQ(r.ticket, ticket);
    ASSERT_EQ(r.result, comm_status::ok);
    ASSERT_EQ(r.rows, rows);
    EXPECT_TRUE(holds(r.payload, seed)) << rows << " rows";
    s.half->release(ticket);
  }
  child->close_input();
  EXPECT_EQ(child->reap(), 0);
}

TEST_P(peer_process_test, ends_all_open_exchanges_soon_after_the_worker_is_killed) {
  for (int round = 0; round < 5; ++round) {
    testing::internal::CaptureStderr();
    start("hold");
    // The worker's first words connect the pair. UCX sees no peer die before that; then the call's
    // deadline has to.
    std::set<exchange_ticket> open{s.send(k_peer_worker.worker, 1, 1, 1)};
    EXPECT_TRUE(happens([&] { return s.half->poll({}), child->has_line(); }));
    ASSERT_EQ(child->read_line(), "held 1");
    for (int i = 0; i < 100; ++i) s.half->poll({});
    open.insert(s.send(k_peer_worker.worker, 2, 1, 1));
    // In rendezvous when death comes; without it only the keepalive can tell.
    if (round % 2 == 1) open.insert(s.send(k_peer_worker.worker, 4, 2000, 1));
    const auto killed = std::chrono::steady_clock::now();
    child->kill(SIGKILL);
    EXPECT_EQ(child->reap(), -SIGKILL);
    while (!open.empty()) {
      const returned r = collect();
      ASSERT_NE(r.ticket, 0u);
      EXPECT_EQ(r.result, comm_status::peer_lost);
      EXPECT_EQ(open.erase(r.ticket), 1u);
    }
    // A bound of the protocol, not of speed: twice the keepalive and room for a busy machine.
    const auto seen = std::chrono::steady_clock::now() - killed;
    EXPECT_LT(seen, std::chrono::seconds(5));
    RecordProperty("seen_after_ms_" + std::to_string(round),
                   static_cast<int>(seen / std::chrono::milliseconds(1)));
    exchange_ticket ticket = 0;
    EXPECT_EQ(s.half->open(k_peer_worker.worker, s.key(9), ticket), comm_status::peer_lost);
    s.half->detach_worker(k_peer_worker.worker);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  }
  // The half lives on.
  start("echo");
  s.send(k_peer_worker.worker, 10, 700, 8);
  EXPECT_TRUE(holds(collect().payload, 8));
}

TEST_P(peer_process_test, bounds_what_a_stopped_worker_can_hold_by_its_credits) {
  start("echo");
  s.send(k_peer_worker.worker, 1, 1, 1);
  s.half->release(collect().ticket);
  child->kill(SIGSTOP);
  std::vector<exchange_ticket> sent;
  exchange_ticket ticket = 0;
  while (s.half->open(k_peer_worker.worker, s.key(2), ticket) == comm_status::ok) {
    fill(s.half->send_region(ticket, 500), 3);
    ASSERT_EQ(s.half->dispatch(ticket, 500, 0), comm_status::ok);
    sent.push_back(ticket);
  }
  EXPECT_EQ(sent.size(), k_peer_shape.banks);
  returned r;
  s.half->wait(std::chrono::nanoseconds(0), std::chrono::milliseconds(300));
  EXPECT_FALSE(s.poll_one(r));
  for (const exchange_ticket late : sent) EXPECT_EQ(s.half->expire(late), comm_status::ok);
  child->kill(SIGCONT);
  // Its late returns free the banks.
  EXPECT_TRUE(happens([&] {
    s.half->poll({});
    return s.half->counters().late_returns == sent.size();
  }));
  s.send(k_peer_worker.worker, 3, 600, 9);
  EXPECT_TRUE(holds(collect().payload, 9));
}

TEST_P(peer_process_test, lets_go_of_a_stopped_worker_without_waiting_for_it) {
  start("echo");
  s.send(k_peer_worker.worker, 1, 1, 1);
  s.half->release(collect().ticket);
  child->kill(SIGSTOP);
  for (std::uint64_t step = 2; step <= 4; ++step) s.send(k_peer_worker.worker, step, 3000, 1);
  s.half->poll({});
  const auto start_of_end = std::chrono::steady_clock::now();
  s.half->detach_worker(k_peer_worker.worker);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(collect().result, comm_status::peer_lost);
  s.half.reset();
  carrier.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start_of_end, std::chrono::seconds(5));
}

}  // namespace
}  // namespace moetier::transport
