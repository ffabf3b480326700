// Other machines: verdicts by facts, and two doctors on loopback on a carrier of this process.

#include "actors/doctor/peers.hpp"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "actors/doctor/peer_line.hpp"

namespace moetier::doctor {
namespace {

void expect(const finding& f, verdict what, const char* seen) {
  EXPECT_EQ(f.what, what) << f.check << ": " << f.seen;
  EXPECT_NE(f.seen.find(seen), std::string::npos) << f.seen;
  EXPECT_EQ(f.remedy.empty(), what == verdict::pass || what == verdict::skip) << f.remedy;
}

TEST(doctor_peers, far_peers_slow_rows_and_silence_have_their_lines) {
  peer_facts f{.address = "b:7410", .is_doctor = true};
  f.words_p50 = 2 * k_millisecond;
  f.rows = {.one_row_p50 = 5000, .bytes_per_second = 4e9};
  auto all = judge_peer(f);
  ASSERT_EQ(all.size(), 2U);
  expect(all[0], verdict::pass, "a doctor answers in 2.00 ms");
  expect(all[1], verdict::pass, "5.0 us (p50), 4.00 GB/s");
  f.words_p50 = 11 * k_millisecond;
  expect(judge_peer(f)[0], verdict::warn, "11.00 ms");
  f.rows.bytes_per_second = 0.4e9;
  expect(judge_peer(f)[1], verdict::warn, "0.40 GB/s");
  f.same_host = true;
  EXPECT_NE(judge_peer(f)[1].remedy.find("cross_memory"), std::string::npos);
  f.rows_refusal = "rows did not come back";
  expect(judge_peer(f)[1], verdict::fail, "did not come back");
  f.is_doctor = false;
  expect(judge_peer(f)[1], verdict::skip, "no rows of strangers");
  f.refusal = "Connection refused";
  all = judge_peer(f);
  ASSERT_EQ(all.size(), 1U);
  expect(all[0], verdict::fail, "Connection refused");
}

TEST(doctor_peers, rows_cross_between_two_halves_and_are_measured) {
  const auto carrier = transport::open_carrier("in_process", {});
  ASSERT_TRUE(carrier);
  auto answerer = row_answerer::make(**carrier, incarnation_id(1));
  auto asker = row_asker::make(**carrier, incarnation_id(2));
  ASSERT_TRUE(answerer && asker);
  ASSERT_TRUE((*answerer)->attach(incarnation_id(2), (*asker)->address()));
  ASSERT_TRUE((*asker)->attach(incarnation_id(1), (*answerer)->address()));
  std::atomic<bool> over{false};
  std::thread turns([&] {
    while (!over) (*answerer)->turn();
  });
  const auto figures = (*asker)->measure();
  over = true;
  turns.join();
  ASSERT_TRUE(figures) << figures.error().text;
  EXPECT_GT(figures->one_row_p50, 0U);
  EXPECT_GT(figures->bytes_per_second, 0.0);
}

// An answerer on a free port of this process, for as long as it lives.
class answering final {
 public:
  answering() {
    thread_ = std::thread([this] {
      const auto ended = answer_peers(
          {"127.0.0.1", 0}, {.name = "in_process", .listen = "127.0.0.1", .allow_tcp = true},
          [this](const config::endpoint& at) { port_ = at.port; }, [this] { return over_.load(); });
      EXPECT_TRUE(ended);
    });
    while (port_ == 0) std::this_thread::yield();
  }
  ~answering() {
    over_ = true;
    thread_.join();
  }
  config::endpoint at() const { return {"127.0.0.1", port_}; }

 private:
  std::atomic<std::uint16_t> port_{0};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

TEST(doctor_peers, nonsense_ends_one_conversation_and_no_more) {
  const answering other;
  for (const std::string& nonsense :
       {std::string("attach"), std::string("attach x y"), std::string("attach 1 0g"),
        "attach 1 " + std::string(2 * 4097, 'a'), std::string(40000, 'z')}) {
    auto line = peer_line::connect(other.at(), k_second);
    ASSERT_TRUE(line);
    ASSERT_TRUE((*line)->hear(10 * k_second));  // the greeting
    (*line)->say(nonsense);
    const auto answer = (*line)->hear(10 * k_second);
    EXPECT_TRUE(!answer || *answer == "refused") << *answer;
  }
  auto line = peer_line::connect(other.at(), k_second);
  ASSERT_TRUE(line);
  EXPECT_TRUE((*line)->hear(10 * k_second)->starts_with("moetier.doctor/1 "));
  (*line)->say("ping");
  EXPECT_EQ((*line)->hear(10 * k_second), "pong");
}

TEST(doctor_peers, nobody_there_is_a_refusal) {
  std::uint16_t port = 0;
  {
    const auto listener = peer_listener::open({"127.0.0.1", 0});
    ASSERT_TRUE(listener);
    port = (*listener)->address().port;
    EXPECT_EQ(peer_listener::open({"127.0.0.1", port}).error().why, reason::address_in_use);
  }
  const peer_facts f = probe_peer({"127.0.0.1", port}, {}, k_second);
  EXPECT_EQ(f.refusal.empty(), false);
  EXPECT_EQ(peer_listener::open({"192.0.2.1", 0}).error().why, reason::config_invalid);
}

}  // namespace
}  // namespace moetier::doctor
