// What processes share: blocks and their names, the bell and the doors, and what a lane's receiver
// makes of a sender that is wrong, dead in the middle, or gone.

#include "transport/shared_memory/front.hpp"
#include "transport/shared_memory/lane.hpp"

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/transport/tier_of_halves.hpp"

namespace moetier::transport {
namespace {

constexpr bank_layout k_layout{
    .banks = 2, .out_bytes = 256, .in_bytes = 64, .carrier_bytes = k_lane_bytes};

// Takes what a lane brings.
struct note_taker final : FrameSink {
  landing admit(std::span<const std::byte> head, std::size_t payload_bytes) override {
    heads.emplace_back(head.begin(), head.end());
    if (!admits) return {};
    region.assign(payload_bytes, std::byte{0});
    return {.admitted = true, .place = 7, .region = region, .memory = nullptr};
  }
  void landed(link_place place, bool complete) override {
    EXPECT_EQ(place, 7u);
    EXPECT_TRUE(complete);
    ++landings;
  }
  void sent(link_place, time_ns) override {}
  void lost(link_peer) override {}
  void gone(link_peer) override {}
  void left(link_peer) override {}
  bool has_work() const override { return false; }

  bool admits = true;
  int landings = 0;
  std::vector<std::vector<std::byte>> heads;
  std::vector<std::byte> region;
};

struct lane_test : testing::Test {
  std::unique_ptr<front> here = *front::make();
  std::unique_ptr<front> there = *front::make();
  std::shared_ptr<bank_memory> memory = *bank_memory::make(k_layout);
  std::unique_ptr<outgoing_lane> out = *outgoing_lane::make(there->name(), *here, memory);
  note_taker sink;

  lane_words& words() { return *reinterpret_cast<lane_words*>(memory->block()->bytes().data()); }
  expected<std::unique_ptr<incoming_lane>> taken() {
    lane_offer offer;
    EXPECT_TRUE(there->take(offer));
    return incoming_lane::open(offer);
  }
};

TEST(shared_block, shows_the_same_bytes_to_who_knows_its_name) {
  const auto made = shared_block::make(5000);
  ASSERT_TRUE(made) << made.error().text;
  (*made)->bytes()[4999] = std::byte{7};
  const auto opened = shared_block::open((*made)->name());
  ASSERT_TRUE(opened) << opened.error().text;
  EXPECT_EQ((*opened)->bytes().size(), 5000u);
  EXPECT_EQ((*opened)->bytes()[4999], std::byte{7});
  EXPECT_EQ((*opened)->bytes()[100], std::byte{0});
}

TEST(shared_block, is_not_taken_for_another_of_the_same_number) {
  const auto made = shared_block::make(64);
  block_name stranger = (*made)->name();
  ++stranger.token[1];
  EXPECT_EQ(shared_block::open(stranger).error().why, reason::carrier_unavailable);
  block_name closed = (*made)->name();
  closed.fd = 1 << 20;
  EXPECT_EQ(shared_block::open(closed).error().why, reason::carrier_unavailable);
  block_name file = (*made)->name();  // no anonymous file: it could be cut short
  file.fd = ::open("/proc/self/exe", O_RDONLY);
  EXPECT_EQ(shared_block::open(file).error().why, reason::carrier_unavailable);
  ::close(file.fd);
}

TEST(shared_block, outlives_its_owner_where_it_is_mapped) {
  auto made = shared_block::make(64);
  const auto opened = shared_block::open((*made)->name());
  (*made)->bytes()[63] = std::byte{9};
  const block_name name = (*made)->name();
  made->reset();
  EXPECT_EQ((*opened)->bytes()[63], std::byte{9});
  EXPECT_FALSE(shared_block::open(name));
}

TEST(front, keeps_a_ring_that_came_before_the_sleep) {
  const auto owner = *front::make();
  const auto peer = *front::open(owner->name());
  const std::uint32_t heard = owner->rung();
  peer->ring();
  owner->sleep(heard, std::chrono::hours(1));
  EXPECT_NE(owner->rung(), heard);
}

// One ring that is lost, and both sleep for an hour.
TEST(front, wakes_who_sleeps_each_time) {
  constexpr int k_rounds = 5000;
  const auto here = *front::make();
  const auto there = *front::make();
  const auto answer = [&](front& own, const block_name& other, std::uint32_t heard, bool begins) {
    const auto peer = *front::open(other);
    for (int i = 0; i < k_rounds; ++i) {
      if (begins) peer->ring();
      while (own.rung() == heard) own.sleep(heard, std::chrono::hours(1));
      ++heard;
      if (!begins) peer->ring();
    }
  };
  std::thread second(answer, std::ref(*there), here->name(), there->rung(), false);
  answer(*here, there->name(), here->rung(), true);
  second.join();
  EXPECT_EQ(here->rung(), static_cast<std::uint32_t>(k_rounds));
}

TEST(front, hands_over_each_offer_once_whoever_makes_them) {
  const auto owner = *front::make();
  constexpr int k_peers = 4;
  constexpr int k_each = 200;
  std::atomic<int> running{k_peers};
  std::vector<std::thread> peers;
  for (int p = 0; p < k_peers; ++p) {
    peers.emplace_back([&, p] {
      const auto mine = *front::open(owner->name());
      for (int i = 0; i < k_each; ++i) {
        const lane_offer offer{.lane = {.process = static_cast<std::uint32_t>(getpid()),
                                        .fd = p * k_each + i,
                                        .token = {}},
                               .front = {}};
        while (!mine->offer(offer)) std::this_thread::yield();
      }
      --running;
    });
  }
  std::vector<int> seen(k_peers * k_each);
  lane_offer offer;
  for (bool last = false; !last;) {
    last = running == 0;
    while (owner->take(offer)) ++seen.at(static_cast<std::size_t>(offer.lane.fd));
  }
  for (auto& peer : peers) peer.join();
  for (const int count : seen) EXPECT_EQ(count, 1);
}

// A front all of whose doors show the number of a process that has ended.
struct doors_of_the_dead : testing::Test {
  std::unique_ptr<front> owner = *front::make();
  std::unique_ptr<front> peer = *front::open(owner->name());
  std::unique_ptr<shared_block> opened = *shared_block::open(owner->name());
  const lane_offer offer{.lane = {.process = static_cast<std::uint32_t>(getpid())}, .front = {}};

  void leave(bool complete) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    int taken = 0;
    while (peer->offer(offer)) ++taken;
    EXPECT_GT(taken, 64);
    const auto own = std::uint64_t{static_cast<std::uint32_t>(getpid())} << 1 | 1;
    const auto dead = std::uint64_t{static_cast<std::uint32_t>(child)} << 1 | (complete ? 1 : 0);
    auto* word = reinterpret_cast<std::uint64_t*>(opened->bytes().data());
    int changed = 0;
    for (std::size_t i = 0; i < opened->bytes().size() / 8; ++i) {
      if (word[i] == own) word[i] = dead, ++changed;
    }
    EXPECT_EQ(changed, taken);
  }
};

TEST_F(doors_of_the_dead, are_freed_when_their_offer_never_became_whole) {
  leave(false);
  lane_offer none;
  EXPECT_FALSE(owner->take(none));
  owner->look_at_doors();
  int free = 0;
  while (peer->offer(offer)) ++free;
  EXPECT_GT(free, 64);
}

// The owner, a client between two calls, does not look for hours; workers come and go.
TEST_F(doors_of_the_dead, are_taken_over_by_who_finds_none_free) {
  for (const bool complete : {false, true}) {
    leave(complete);
    EXPECT_TRUE(peer->offer(offer));
    lane_offer out;
    while (owner->take(out)) {
    }
  }
}

TEST_F(lane_test, brings_frames_in_order_and_tells_when_the_memory_is_free) {
  auto in = *taken();
  for (std::uint32_t i = 0; i < 100; ++i) {
    const std::uint32_t head = i % k_layout.heads();
    const std::size_t bytes = head < k_layout.banks ? i : 0;
    memory->head(head)[5] = static_cast<std::byte>(i);
    if (head < k_layout.banks) fill(memory->out(head).first(bytes), i);
    out->send(head, bytes, 100 + i);
    link_place place = 0;
    time_ns at = 0;
    EXPECT_FALSE(out->sent(place, at)) << "the receiver has not copied it";
    const time_ns before = monotonic_now();
    ASSERT_TRUE(in->receive(sink));
    EXPECT_EQ(sink.heads.back()[5], static_cast<std::byte>(i));
    EXPECT_EQ(sink.region.size(), bytes);
    EXPECT_TRUE(holds(sink.region, i));
    ASSERT_TRUE(out->sent(place, at));
    EXPECT_EQ(place, 100 + i);
    EXPECT_GE(at, before);
    EXPECT_LE(at, monotonic_now());
    EXPECT_FALSE(in->receive(sink));
  }
  EXPECT_EQ(sink.landings, 100);
  EXPECT_EQ(in->frames_dropped(), 0u);
}

TEST_F(lane_test, forgets_what_is_not_admitted) {
  auto in = *taken();
  sink.admits = false;
  out->send(0, 200, 1);
  EXPECT_TRUE(in->receive(sink));
  EXPECT_EQ(sink.landings, 0);
  link_place place = 0;
  time_ns at = 0;
  EXPECT_TRUE(out->sent(place, at));
}

TEST_F(lane_test, drops_a_frame_that_lies_outside_of_its_memory) {
  auto in = *taken();
  for (const auto& [head, bytes] : std::vector<std::pair<std::uint32_t, std::size_t>>{
           {0, k_layout.out_bytes + 1}, {k_layout.heads(), 0}, {~0u, 0}, {2, 1}, {1, ~0ull}}) {
    out->send(head, bytes, 1);
    EXPECT_TRUE(in->receive(sink));
  }
  EXPECT_EQ(in->frames_dropped(), 5u);
  EXPECT_TRUE(sink.heads.empty());
  out->send(1, 8, 2);
  EXPECT_TRUE(in->receive(sink));
  EXPECT_EQ(sink.landings, 1);
}

TEST_F(lane_test, ends_when_its_sender_counts_more_frames_than_there_can_be) {
  auto in = *taken();
  words().sent = lane_words::k_frames + 1;
  EXPECT_FALSE(in->receive(sink));
  EXPECT_TRUE(in->has_ended());
  EXPECT_EQ(in->frames_dropped(), 1u);
  EXPECT_TRUE(sink.heads.empty());
}

TEST_F(lane_test, is_left_alone_by_a_child_that_was_forked) {
  auto in = *taken();
  const pid_t child = fork();
  if (child == 0) {
    here->go();
    out.reset();
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(in->has_ended());
  out->send(0, 8, 1);
  EXPECT_TRUE(in->receive(sink));
}

TEST_F(lane_test, is_not_opened_by_sizes_that_are_not_its_own) {
  const lane_offer offer{.lane = memory->block()->name(), .front = here->name()};
  EXPECT_TRUE(incoming_lane::open(offer));
  const auto refuses = [&](auto change) {
    const std::uint32_t banks = words().banks;
    const std::uint64_t bytes = words().out_bytes;
    change();
    const auto opened = incoming_lane::open(offer);
    words().banks = banks;
    words().out_bytes = bytes;
    return !opened && opened.error().why == reason::frame_malformed;
  };
  EXPECT_TRUE(refuses([&] { words().banks = 0; }));
  EXPECT_TRUE(refuses([&] { words().banks = 5; }));
  EXPECT_TRUE(refuses([&] { ++words().banks; }));
  EXPECT_TRUE(refuses([&] { words().out_bytes += 128; }));
  EXPECT_TRUE(refuses([&] { words().out_bytes = ~0ull; }));
  lane_offer small = offer;
  const auto block = *shared_block::make(64);
  small.lane = block->name();
  EXPECT_FALSE(incoming_lane::open(small));
}

TEST_F(lane_test, ends_after_its_last_frame_when_the_sender_lets_go) {
  auto in = *taken();
  out->send(0, 16, 1);
  out.reset();
  memory.reset();
  EXPECT_FALSE(in->has_ended());
  EXPECT_TRUE(in->receive(sink));
  EXPECT_EQ(sink.landings, 1);
  EXPECT_TRUE(in->has_ended());
}

TEST_F(lane_test, knows_when_the_other_half_has_gone) {
  auto in = *taken();
  EXPECT_FALSE(out->is_lost());
  there->go();
  EXPECT_TRUE(out->is_lost());
  EXPECT_FALSE(in->has_ended());
  here->go();
  EXPECT_TRUE(in->has_ended());
  EXPECT_FALSE(outgoing_lane::make(there->name(), *here, memory));
}

TEST(shared_memory_carrier, opens_a_lane_later_for_which_descriptors_were_short) {
  tier_of_halves tier{*open_carrier("shared_memory", {})};
  test_source s = tier.make_source(1);
  test_worker w = tier.make_worker(1);
  tier.attach(s, w);
  s.send(w.identity.worker, 1, 2, 5);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 3;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  arrival a;
  EXPECT_FALSE(w.poll_one(a));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  a = tier.receive(s, w);
  EXPECT_TRUE(holds(a.hidden, 5));
  w.answer(a, 2, 6);
  EXPECT_TRUE(holds(tier.collect(s, w).payload, 6));
}

}  // namespace
}  // namespace moetier::transport
