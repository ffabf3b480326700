// Frames that are lost, doubled, late, shortened or damaged on their way, and members that freeze
// or die: one delivery, no wrong row, no hang.

#include <optional>
#include <random>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "tests/transport/tier_of_halves.hpp"
#include "transport/in_process/carrier.hpp"

namespace moetier::transport {
namespace {

using act = frame_fault::act;

class in_process_faults : public testing::Test {
 protected:
  void use(bool checksum) {
    tier.emplace(
        make_in_process({.listen = "", .checksum_payload = checksum, .allow_tcp = true}, &hooks));
    s = tier->make_source(1);
    w = tier->make_worker(1);
    tier_of_halves::attach(s, w);
  }

  // The next frame of this kind meets the fault; all others pass.
  void next(wire_kind kind, frame_fault fault) {
    hooks.set_rule([=, done = false](const wire_header& h) mutable {
      if (done || h.kind != kind) return frame_fault{};
      done = true;
      return fault;
    });
  }

  // The connection breaks; both ends live and see it, the source first.
  void break_connection() {
    hooks.break_between({member_role::source, 1}, {member_role::worker, 1});
    tier_of_halves::settle(s, w);
    EXPECT_EQ(s.half->counters().peers_lost, w.half->counters().peers_lost);
  }
  // As the next step does: the worker hears nothing of it.
  void attach_at_the_source() {
    const auto ok = s.half->attach_worker(w.identity, w.half->address());
    EXPECT_TRUE(ok) << ok.error().text;
  }

  fault_hooks hooks;
  std::optional<tier_of_halves> tier;
  test_source s;
  test_worker w;
  arrival a;
  returned r;
};

TEST_F(in_process_faults, a_lost_dispatch_blocks_one_bank_until_the_worker_is_attached_again) {
  use(false);
  next(wire_kind::dispatch, {act::drop});
  const exchange_ticket lost = s.send(w.identity.worker, 1, 2, 1);
  tier->settle(s, w);
  EXPECT_FALSE(w.poll_one(a));
  EXPECT_EQ(s.half->expire(lost), comm_status::ok);
  for (std::uint64_t step = 2; step < 6; ++step) tier->exchange(s, w, step, 2);
  s.half->detach_worker(w.identity.worker);
  EXPECT_FALSE(s.poll_one(r)) << "nobody waits for a LATE exchange";
  tier->attach(s, w);
  s.send(w.identity.worker, 7, 1, 1);
  s.send(w.identity.worker, 8, 1, 1);
}

TEST_F(in_process_faults, a_lost_return_is_a_matter_of_the_deadline) {
  use(false);
  next(wire_kind::give_back, {act::drop});
  const exchange_ticket ticket = s.send(w.identity.worker, 1, 2, 1);
  w.answer(tier->receive(s, w), 2, 3);
  tier->settle(s, w);
  EXPECT_FALSE(s.poll_one(r));
  EXPECT_EQ(s.half->expire(ticket), comm_status::ok);
  for (std::uint64_t step = 2; step < 6; ++step) tier->exchange(s, w, step, 2);
}

TEST_F(in_process_faults, a_doubled_dispatch_is_served_once) {
  use(false);
  for (std::uint64_t step = 1; step <= 10; ++step) {
    next(wire_kind::dispatch, {act::duplicate});
    tier->exchange(s, w, step, 3);
    EXPECT_FALSE(w.poll_one(a));
    EXPECT_EQ(w.half->counters().frames_dropped, step);
  }
}

TEST_F(in_process_faults, a_doubled_return_ends_one_exchange) {
  use(false);
  for (std::uint64_t step = 1; step <= 10; ++step) {
    next(wire_kind::give_back, {act::duplicate});
    tier->exchange(s, w, step, 3);
    EXPECT_FALSE(s.poll_one(r));
    EXPECT_EQ(s.half->counters().frames_dropped, step);
  }
}

TEST_F(in_process_faults, dispatches_that_overtake_each_other_are_all_served) {
  use(false);
  next(wire_kind::dispatch, {act::delay, 1});
  const exchange_ticket first = s.send(w.identity.worker, 1, 1, 11);
  const exchange_ticket second = s.send(w.identity.worker, 2, 1, 12);
  const arrival overtaking = tier->receive(s, w);
  const arrival overtaken = tier->receive(s, w);
  EXPECT_EQ(overtaking.key.step, 2u);
  EXPECT_EQ(overtaken.key.step, 1u);
  EXPECT_TRUE(holds(overtaking.hidden, 12));
  EXPECT_TRUE(holds(overtaken.hidden, 11));
  w.answer(overtaking, 1, 22);
  w.answer(overtaken, 1, 21);
  EXPECT_EQ(tier->collect(s, w).ticket, second);
  EXPECT_EQ(tier->collect(s, w).ticket, first);
}

TEST_F(in_process_faults, a_late_return_is_dropped_and_frees_its_bank) {
  use(false);
  next(wire_kind::give_back, {act::delay, 1'000'000});
  const exchange_ticket ticket = s.send(w.identity.worker, 1, 2, 1);
  w.answer(tier->receive(s, w), 2, 3);
  tier->settle(s, w);
  EXPECT_EQ(s.half->expire(ticket), comm_status::ok);
  tier->exchange(s, w, 2, 2);
  EXPECT_EQ(s.half->counters().late_returns, 0u);
  hooks.flush();
  tier->settle(s, w);
  EXPECT_FALSE(s.poll_one(r));
  EXPECT_EQ(s.half->counters().late_returns, 1u);
  s.send(w.identity.worker, 3, 1, 1);
  s.send(w.identity.worker, 4, 1, 1);
}

TEST_F(in_process_faults, an_old_frame_that_comes_after_its_bank_was_used_again_is_nobodys) {
  use(false);
  for (const wire_kind kind : {wire_kind::dispatch, wire_kind::give_back}) {
    next(kind, {act::duplicate, 5});
    for (std::uint64_t step = 1; step < 20; ++step) tier->exchange(s, w, step, 2);
    EXPECT_FALSE(w.poll_one(a));
    EXPECT_FALSE(s.poll_one(r));
  }
  EXPECT_EQ(w.half->counters().frames_dropped, 1u);
  EXPECT_EQ(s.half->counters().frames_dropped, 1u);
}

TEST_F(in_process_faults, a_shortened_dispatch_is_refused_as_corrupt) {
  use(false);
  next(wire_kind::dispatch, {act::truncate, 1});
  const exchange_ticket ticket = s.send(w.identity.worker, 1, 2, 1);
  r = tier->collect(s, w);
  EXPECT_EQ(r.ticket, ticket);
  EXPECT_EQ(r.result, comm_status::ok);
  EXPECT_EQ(r.worker_status, status::corrupt);
  s.half->release(ticket);
  tier->exchange(s, w, 2, 2);
}

TEST_F(in_process_faults, a_shortened_return_ends_corrupt) {
  use(false);
  next(wire_kind::give_back, {act::truncate, 16});
  const exchange_ticket ticket = s.send(w.identity.worker, 1, 2, 1);
  w.answer(tier->receive(s, w), 2, 3);
  r = tier->collect(s, w);
  EXPECT_EQ(r.ticket, ticket);
  EXPECT_EQ(r.result, comm_status::corrupt);
  EXPECT_TRUE(r.payload.empty());
  s.half->release(ticket);
  tier->exchange(s, w, 2, 2);
}

TEST_F(in_process_faults, a_damaged_header_is_dropped_and_never_answered) {
  use(false);
  for (const std::uint32_t bit : {0u, 40u, 70u, 130u, 500u, 1023u}) {
    const std::uint64_t before = w.half->counters().frames_dropped;
    next(wire_kind::dispatch, {act::flip_header, bit});
    const exchange_ticket ticket = s.send(w.identity.worker, 1, 2, 1);
    tier->settle(s, w);
    EXPECT_FALSE(w.poll_one(a)) << "bit " << bit;
    EXPECT_FALSE(s.poll_one(r)) << "bit " << bit;
    EXPECT_EQ(w.half->counters().frames_dropped, before + 1);
    EXPECT_EQ(s.half->expire(ticket), comm_status::ok);
    s.half->detach_worker(w.identity.worker);
    tier->attach(s, w);
  }
}

TEST_F(in_process_faults, the_payload_check_catches_a_flipped_bit_both_ways) {
  use(true);
  for (std::uint32_t bit = 0; bit < 2 * 96 * 8; bit += 7) {
    next(wire_kind::dispatch, {act::flip_payload, bit});
    exchange_ticket ticket = s.send(w.identity.worker, bit, 2, 1);
    r = tier->collect(s, w);
    EXPECT_EQ(r.result, comm_status::ok);
    EXPECT_EQ(r.worker_status, status::corrupt) << "bit " << bit;
    s.half->release(ticket);
    next(wire_kind::give_back, {act::flip_payload, bit});
    ticket = s.send(w.identity.worker, bit, 2, 1);
    w.answer(tier->receive(s, w), 2, 3);
    r = tier->collect(s, w);
    EXPECT_EQ(r.result, comm_status::corrupt) << "bit " << bit;
    s.half->release(ticket);
  }
  hooks.set_rule({});
  tier->exchange(s, w, 2, 2);
}

TEST_F(in_process_faults, a_stalled_worker_serves_what_waited_once_it_resumes) {
  use(false);
  hooks.stall({member_role::worker, 1});
  const exchange_ticket ticket = s.send(w.identity.worker, 1, 2, 1);
  tier->settle(s, w);
  EXPECT_FALSE(w.poll_one(a));
  EXPECT_FALSE(s.poll_one(r));
  hooks.resume({member_role::worker, 1});
  w.answer(tier->receive(s, w), 2, 3);
  EXPECT_EQ(tier->collect(s, w).ticket, ticket);
}

TEST_F(in_process_faults, a_killed_worker_ends_its_exchanges_and_wakes_who_waits) {
  use(false);
  const exchange_ticket ticket = s.send(w.identity.worker, 1, 2, 1);
  std::thread assassin([&] { hooks.kill({member_role::worker, 1}); });
  EXPECT_TRUE(happens([&] {
    s.half->wait(std::chrono::nanoseconds(0), k_patience);
    return s.poll_one(r);
  }));
  assassin.join();
  EXPECT_EQ(r.ticket, ticket);
  EXPECT_EQ(r.result, comm_status::peer_lost);
  EXPECT_EQ(s.half->counters().peers_lost, 1u);
  EXPECT_FALSE(w.poll_one(a)) << "the dead see nothing";
  // Its successor serves.
  test_worker next_life = tier->make_worker(2);
  tier->attach(s, next_life);
  tier->exchange(s, next_life, 2, 2);
}

TEST_F(in_process_faults, a_killed_source_is_seen_by_the_worker) {
  use(false);
  s.send(w.identity.worker, 1, 2, 1);
  a = tier->receive(s, w);
  hooks.kill({member_role::source, 1});
  std::vector<arrival> none;
  w.half->poll(none);
  EXPECT_EQ(w.half->counters().peers_lost, 1u);
  EXPECT_EQ(w.half->give_back(a.ticket, 0, status::ok, 0), comm_status::peer_lost);
}

// ---- a connection that breaks between two that live ----

TEST_F(in_process_faults, a_source_whose_connection_broke_is_served_again_when_it_calls_again) {
  use(true);
  for (std::uint64_t step = 1; step < 30; ++step) {
    tier->exchange(s, w, step, 2);
    if (testing::Test::HasFailure()) return;
    if (step % 5 != 0) continue;
    break_connection();
    exchange_ticket refused = 0;
    EXPECT_EQ(s.half->open(w.identity.worker, s.key(step), refused), comm_status::peer_lost);
    attach_at_the_source();
  }
  EXPECT_EQ(w.half->counters().peers_lost, 5u);
  EXPECT_EQ(s.half->counters().peers_left + w.half->counters().peers_left, 0u);
}

TEST_F(in_process_faults, rows_held_over_a_break_stay_readable_while_their_bank_serves_again) {
  use(false);
  s.send(w.identity.worker, 1, 3, 41);
  a = tier->receive(s, w);
  break_connection();
  ASSERT_TRUE(s.poll_one(r));
  EXPECT_EQ(r.result, comm_status::peer_lost);
  attach_at_the_source();
  for (std::uint64_t step = 2; step < 9; ++step) tier->exchange(s, w, step, 3);
  EXPECT_TRUE(holds(a.hidden, 41));
  EXPECT_TRUE(holds(a.records, 41, a.hidden.size()));
  fill(w.half->return_region(a.ticket), 7);
  EXPECT_EQ(w.half->give_back(a.ticket, 3, status::ok, 0), comm_status::peer_lost);
  EXPECT_EQ(w.half->give_back(a.ticket, 3, status::ok, 0), comm_status::unknown_member);
  tier->settle(s, w);
  EXPECT_FALSE(s.poll_one(r)) << "nobody waits for it";
  tier->exchange(s, w, 9, 3);
}

TEST_F(in_process_faults, a_return_over_a_new_connection_to_a_source_that_asked_before_is_dropped) {
  use(false);
  s.send(w.identity.worker, 1, 3, 41);
  a = tier->receive(s, w);
  break_connection();
  attach_at_the_source();
  while (s.poll_one(r)) s.half->release(r.ticket);
  const exchange_ticket second = s.send(w.identity.worker, 2, 1, 5);
  const arrival next = tier->receive(s, w);
  w.answer(a, 3, 77);
  w.answer(next, 1, 78);
  r = tier->collect(s, w);
  EXPECT_EQ(r.ticket, second);
  EXPECT_TRUE(holds(r.payload, 78));
  s.half->release(second);
  EXPECT_FALSE(s.poll_one(r));
}

TEST_F(in_process_faults, calls_that_come_before_the_worker_knows_of_the_break_are_answered) {
  use(true);
  for (std::uint64_t round = 0; round < 5; ++round) {
    hooks.break_between({member_role::source, 1}, {member_role::worker, 1});
    std::vector<returned> none;
    s.half->poll(none);
    attach_at_the_source();
    const exchange_ticket first = s.send(w.identity.worker, 10 * round, 1, 1);
    const exchange_ticket second = s.send(w.identity.worker, 10 * round + 1, 2, 2);
    w.answer(tier->receive(s, w), 1, 11);
    w.answer(tier->receive(s, w), 2, 12);
    for (const exchange_ticket ticket : {first, second}) {
      r = tier->collect(s, w);
      ASSERT_EQ(r.ticket, ticket);
      ASSERT_EQ(r.result, comm_status::ok);
      EXPECT_TRUE(holds(r.payload, ticket == first ? 11 : 12));
      s.half->release(ticket);
    }
  }
}

TEST_F(in_process_faults, a_return_that_the_break_took_is_no_answer_to_a_later_call) {
  use(true);
  for (std::uint64_t step = 1; step < 20; step += 2) {
    s.send(w.identity.worker, step, 2, 1);
    a = tier->receive(s, w);
    hooks.break_between({member_role::source, 1}, {member_role::worker, 1});
    fill(w.half->return_region(a.ticket), 3);
    EXPECT_EQ(w.half->give_back(a.ticket, 2, status::ok, 0), comm_status::peer_lost);
    tier->settle(s, w);
    ASSERT_TRUE(s.poll_one(r));
    EXPECT_EQ(r.result, comm_status::peer_lost);
    s.half->release(r.ticket);
    attach_at_the_source();
    tier->exchange(s, w, step + 1, 2);
    EXPECT_FALSE(s.poll_one(r));
  }
}

TEST_F(in_process_faults, a_source_that_said_farewell_is_not_reached_again) {
  use(false);
  next(wire_kind::dispatch, {act::delay, 1'000'000});
  s.send(w.identity.worker, 1, 1, 1);
  s.half.reset();
  std::vector<arrival> none;
  w.half->poll(none);
  EXPECT_EQ(w.half->counters().peers_left, 1u);
  hooks.flush();
  EXPECT_FALSE(w.poll_one(a));
  source_id told;
  EXPECT_EQ(w.half->poll_unreached(std::span(&told, 1)), 0u);
}

TEST_F(in_process_faults, a_source_that_cannot_be_reached_again_is_told_of_once) {
  use(false);
  next(wire_kind::dispatch, {act::delay, 1'000'000});
  s.send(w.identity.worker, 1, 1, 1);
  hooks.kill({member_role::source, 1});
  std::vector<arrival> none;
  w.half->poll(none);
  hooks.flush();
  EXPECT_FALSE(w.poll_one(a) && w.half->give_back(a.ticket, 0, status::ok, 0) == comm_status::ok);
  source_id told;
  ASSERT_EQ(w.half->poll_unreached(std::span(&told, 1)), 1u);
  EXPECT_EQ(told, s.identity.source);
  EXPECT_EQ(w.half->poll_unreached(std::span(&told, 1)), 0u);
}

// Loss, doubling, delay, shortening and damage at once, under deadlines counted in rounds: every
// exchange ends once, with the right rows or an error; and banks come back.
TEST_F(in_process_faults, one_delivery_and_no_wrong_row_under_all_faults_at_once) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    tier.reset();
    s = {};
    w = {};
    use(true);
    hooks.set_rule([random = std::mt19937_64(seed)](const wire_header&) mutable {
      const auto amount = static_cast<std::uint32_t>(random() % 1000);
      switch (random() % 20) {
        case 0: return frame_fault{act::drop};
        case 1: return frame_fault{act::duplicate};
        case 2: return frame_fault{act::delay, amount % 5};
        case 3: return frame_fault{act::truncate, 1 + amount % 64};
        case 4: return frame_fault{act::flip_header, amount};
        case 5: return frame_fault{act::flip_payload, amount};
        default: return frame_fault{};
      }
    });
    std::uint64_t ended = 0;
    std::uint64_t good = 0;
    std::uint64_t attachments = 1;
    for (std::uint64_t step = 1; step <= 500; ++step) {
      exchange_ticket ticket = 0;
      if (s.half->open(w.identity.worker, s.key(step), ticket) == comm_status::no_credit) {
        // Frames were lost: the pair is attached anew, as a coordinator would after its time limit.
        w.half->detach_source(s.identity.source);
        s.half->detach_worker(w.identity.worker);
        while (s.poll_one(r)) s.half->release(r.ticket);
        tier_of_halves::attach(s, w);
        ++attachments;
        continue;
      }
      const auto seed_of_step = static_cast<std::uint32_t>(step);
      fill(s.half->send_region(ticket, 3), seed_of_step);
      ASSERT_EQ(s.half->dispatch(ticket, 3, 0), comm_status::ok);
      bool is_ended = false;
      for (int round = 0; round < 6 && !is_ended; ++round) {
        while (w.poll_one(a)) {
          EXPECT_TRUE(holds(a.hidden, static_cast<std::uint32_t>(a.key.step)));
          w.answer(a, 3, static_cast<std::uint32_t>(a.key.step) + 1'000'000);
        }
        while (s.poll_one(r)) {
          EXPECT_EQ(r.ticket, ticket) << "only one exchange is open";
          EXPECT_FALSE(is_ended);
          is_ended = true;
          if (r.result == comm_status::ok && r.worker_status == status::ok) {
            EXPECT_TRUE(holds(r.payload, seed_of_step + 1'000'000));
            ++good;
          }
          s.half->release(ticket);
        }
      }
      if (!is_ended) {
        EXPECT_EQ(s.half->expire(ticket), comm_status::ok);
      }
      ended += is_ended;
    }
    EXPECT_GT(good, 200u);
    EXPECT_GT(ended, good);
    EXPECT_LT(attachments, 100u);
  }
}

}  // namespace
}  // namespace moetier::transport
