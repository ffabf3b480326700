// What every carrier promises, asked of each of them: the same exchanges, refusals and losses must
// look the same whatever moves the bytes.

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "tests/transport/tier_of_halves.hpp"

namespace moetier::transport {
namespace {

struct carrier_case {
  const char* name;
  bool checksum;
};

class conformance : public testing::TestWithParam<carrier_case> {
 protected:
  std::unique_ptr<Communication> open() {
#if defined(__SANITIZE_THREAD__)
    // The library's memory hooks and the race detector's crash each other when a thread ends.
    setenv("UCX_MEM_EVENTS", "n", 0);
#endif
    auto carrier = open_carrier(
        GetParam().name,
        {.listen = "127.0.0.1", .checksum_payload = GetParam().checksum, .allow_tcp = true});
    EXPECT_TRUE(carrier) << carrier.error().text;
    return std::move(*carrier);
  }

  tier_of_halves tier{open()};
};

INSTANTIATE_TEST_SUITE_P(carriers, conformance,
                         testing::Values(carrier_case{"in_process", false},
                                         carrier_case{"in_process", true},
                                         carrier_case{"ucx", false}, carrier_case{"ucx", true}),
                         [](const auto& about) {
                           return std::string(about.param.name) +
                                  (about.param.checksum ? "_checked" : "");
                         });

// ---- what a carrier says of itself ----

TEST_P(conformance, declares_the_bits_that_these_tests_prove) {
  const comm_capabilities bits = tier.carrier().capabilities();
  EXPECT_FALSE(bits.lockstep);
  EXPECT_TRUE(bits.in_place);
  EXPECT_TRUE(bits.dedup);
  EXPECT_TRUE(bits.any_roles);
  EXPECT_TRUE(bits.independent);
  EXPECT_TRUE(bits.mask);
  EXPECT_TRUE(bits.elastic);
  EXPECT_TRUE(bits.survives_kill);
  EXPECT_TRUE(bits.host_memory);
  EXPECT_FALSE(bits.device_memory);
  EXPECT_TRUE(bits.ordered_rows);
  EXPECT_TRUE(bits.fixed_sum);
  EXPECT_TRUE(bits.non_uniform_slots);
  EXPECT_FALSE(tier.carrier().describe().empty());
  EXPECT_FALSE(tier.carrier().name().empty());
}

// ---- where rows lie ----

class noted_memory final : public RowMemoryWatch {
 public:
  void made(std::span<std::byte> block) noexcept override {
    blocks.push_back(block);
    block[0] = block[0];  // it is there
  }
  void going(std::span<std::byte> block) noexcept override {
    const auto is_it = [&](const auto& b) { return b.data() == block.data(); };
    gone += static_cast<int>(std::erase_if(blocks, is_it));
    block[0] = block[0];  // still
  }
  bool holds(std::span<const std::byte> rows) const {
    return std::any_of(blocks.begin(), blocks.end(), [&](const auto& b) {
      return rows.data() >= b.data() && rows.data() + rows.size() <= b.data() + b.size();
    });
  }

  std::vector<std::span<std::byte>> blocks;
  int gone = 0;
};

TEST_P(conformance, tells_where_a_worker_keeps_its_rows_until_nobody_touches_them) {
  const auto noted = std::make_shared<noted_memory>();
  {
    test_source s = tier.make_source(1);
    test_worker w = tier.make_worker(1, 0x2222'0000'0000'0001, 8, noted);
    EXPECT_TRUE(noted->blocks.empty());
    tier.attach(s, w);
    EXPECT_EQ(noted->blocks.size(), 1u);
    s.send(w.identity.worker, 1, 2, 5);
    const arrival a = tier.receive(s, w);
    EXPECT_TRUE(noted->holds(a.hidden));
    EXPECT_TRUE(noted->holds(a.records));
    EXPECT_TRUE(noted->holds(w.half->return_region(a.ticket)));
    w.answer(a, 2, 6);
    tier.collect(s, w);
    EXPECT_EQ(noted->gone, 0);
  }
  EXPECT_EQ(noted->gone, 1);
  EXPECT_TRUE(noted->blocks.empty());
}

// ---- rows and shapes (H, Z, O, F: the bytes that arrive are the bytes that were sent, in order)
// ----

TEST_P(conformance, carries_every_shape_whole_and_in_order) {
  std::uint16_t id = 0;
  for (std::uint32_t k = 1; k <= 9; ++k) {
    const source_shape shape{.rows_max = 1 + 5 * k,
                             .hidden_stride = 16 * k,
                             .top_k = k,
                             .return_stride = 16 * (10 - k),
                             .return_rows_max = (1 + 5 * k) * k,
                             .banks = 2 + k % 3};
    test_source s = tier.make_source(++id, shape);
    test_worker w = tier.make_worker(id);
    tier.attach(s, w);
    std::uint64_t step = 0;
    for (const std::uint32_t rows : {1u, shape.rows_max / 2 + 1, shape.rows_max})
      tier.exchange(s, w, ++step, rows);
  }
}

TEST_P(conformance, gives_back_one_row_per_position_in_exact_mode) {
  source_shape shape = small_shape();
  shape.return_rows_max = shape.rows_max * shape.top_k;
  test_source s = tier.make_source(1, shape);
  test_worker w = tier.make_worker(1);
  tier.attach(s, w);
  s.send(w.identity.worker, 1, shape.rows_max, 5);
  const arrival a = tier.receive(s, w);
  EXPECT_EQ(w.half->return_region(a.ticket).size(),
            std::size_t{shape.return_rows_max} * shape.return_stride);
  w.answer(a, shape.return_rows_max, 6);
  const returned r = tier.collect(s, w);
  EXPECT_EQ(r.rows, shape.return_rows_max);
  EXPECT_TRUE(holds(r.payload, 6));
}

TEST_P(conformance, carries_large_messages) {
  const source_shape shape{.rows_max = 4096,
                           .hidden_stride = 28 * 1024,
                           .top_k = 8,
                           .return_stride = 14 * 1024,
                           .return_rows_max = 4096,
                           .banks = 2};
  test_source s = tier.make_source(1, shape);
  test_worker w = tier.make_worker(1);
  tier.attach(s, w);
  tier.exchange(s, w, 1, 1);
  tier.exchange(s, w, 2, 4096);
}

TEST_P(conformance, crosses_each_size_at_which_a_library_changes_its_protocol) {
  const source_shape shape{.rows_max = 4096,
                           .hidden_stride = 16,
                           .top_k = 1,
                           .return_stride = 32,
                           .return_rows_max = 4096,
                           .banks = 3};
  test_source s = tier.make_source(1, shape);
  test_worker w = tier.make_worker(1);
  tier.attach(s, w);
  std::uint64_t step = 0;
  for (std::uint32_t rows = 1; rows <= 4096; rows *= 2)
    for (const std::uint32_t around : {rows - 1, rows, std::min(rows + 1, 4096u)})
      tier.exchange(s, w, ++step, around);
}

TEST_P(conformance, shows_no_byte_of_the_process_in_padding) {
  test_source s = tier.make_source(1);
  test_worker w = tier.make_worker(1);
  tier.attach(s, w);
  exchange_ticket ticket = 0;
  ASSERT_EQ(s.half->open(w.identity.worker, s.key(1), ticket), comm_status::ok);
  for (const std::byte b : s.half->send_region(ticket, s.shape.rows_max))
    ASSERT_EQ(b, std::byte{0});
}

// ---- zero rows and statuses ----

TEST_P(conformance, gives_zero_rows_the_whole_protocol) {
  test_source s = tier.make_source(1);
  test_worker w = tier.make_worker(1);
  tier.attach(s, w);
  for (std::uint64_t step = 1; step <= 5; ++step) tier.exchange(s, w, step, 0);
  // Rows one way only, either way.
  s.send(w.identity.worker, 6, 3, 1);
  arrival a = tier.receive(s, w);
  EXPECT_EQ(w.half->give_back(a.ticket, 0, status::ok, 0), comm_status::ok);
  returned r = tier.collect(s, w);
  EXPECT_EQ(r.result, comm_status::ok);
  EXPECT_EQ(r.rows, 0u);
  s.half->release(r.ticket);
  s.send(w.identity.worker, 7, 0, 1);
  a = tier.receive(s, w);
  w.answer(a, 2, 9);
  r = tier.collect(s, w);
  EXPECT_EQ(r.rows, 2u);
  EXPECT_TRUE(holds(r.payload, 9));
}

TEST_P(conformance, carries_the_workers_refusal_and_its_detail) {
  test_source s = tier.make_source(1);
  test_worker w = tier.make_worker(1);
  tier.attach(s, w);
  const exchange_ticket ticket = s.send(w.identity.worker, 1, 3, 1);
  const arrival a = tier.receive(s, w);
  EXPECT_EQ(w.half->give_back(a.ticket, 0, status::stale_generation, 77), comm_status::ok);
  const returned r = tier.collect(s, w);
  EXPECT_EQ(r.ticket, ticket);
  EXPECT_EQ(r.result, comm_status::ok);
  EXPECT_EQ(r.worker_status, status::stale_generation);
  EXPECT_EQ(r.detail, 77u);
  EXPECT_EQ(r.rows, 0u);
  s.half->release(ticket);
  tier.exchange(s, w, 2, 3);
}

// ---- credits and order of calls ----

TEST_P(conformance, answers_no_credit_past_the_banks_and_frees_them_on_release) {
  for (std::uint32_t banks = 2; banks <= 4; ++banks) {
    source_shape shape = small_shape();
    shape.banks = banks;
    test_source s = tier.make_source(static_cast<std::uint16_t>(banks), shape);
    test_worker w = tier.make_worker(static_cast<std::uint16_t>(banks));
    tier.attach(s, w);
    std::vector<exchange_ticket> tickets;
    for (std::uint32_t i = 0; i < banks; ++i) tickets.push_back(s.send(w.identity.worker, i, 1, i));
    exchange_ticket refused = 0;
    EXPECT_EQ(s.half->open(w.identity.worker, s.key(9), refused), comm_status::no_credit);
    EXPECT_EQ(refused, 0u);
    for (std::uint32_t i = 0; i < banks; ++i) w.answer(tier.receive(s, w), 1, 50 + i);
    std::set<exchange_ticket> ended;
    for (std::uint32_t i = 0; i < banks; ++i) ended.insert(tier.collect(s, w).ticket);
    EXPECT_EQ(ended, std::set<exchange_ticket>(tickets.begin(), tickets.end()));
    // A return frees nothing by itself: its rows are still being read.
    EXPECT_EQ(s.half->open(w.identity.worker, s.key(9), refused), comm_status::no_credit);
    s.half->release(tickets.back());
    EXPECT_EQ(s.half->open(w.identity.worker, s.key(9), refused), comm_status::ok);
    s.half->release(refused);
  }
}

TEST_P(conformance, uses_any_free_bank_while_another_is_busy) {
  test_source s = tier.make_source(1);
  test_worker w = tier.make_worker(1);
  tier.attach(s, w);
  s.send(w.identity.worker, 1, 1, 1);
  const arrival busy = tier.receive(s, w);
  for (std::uint64_t step = 2; step < 20; ++step) tier.exchange(s, w, step, 2);
  w.answer(busy, 1, 3);
  const returned r = tier.collect(s, w);
  EXPECT_TRUE(holds(r.payload, 3));
}

TEST_P(conformance, refuses_calls_that_the_state_forbids_and_changes_nothing) {
  test_source s = tier.make_source(1);
  test_worker w = tier.make_worker(1);
  tier.attach(s, w);
  exchange_ticket ticket = 0;
  EXPECT_EQ(s.half->open(worker_id{9}, s.key(1), ticket), comm_status::unknown_member);
  EXPECT_EQ(s.half->dispatch(0, 1, 0), comm_status::sequence);
  EXPECT_EQ(s.half->dispatch(12345, 1, 0), comm_status::sequence);
  EXPECT_EQ(s.half->expire(12345), comm_status::sequence);
  s.half->release(12345);

  ASSERT_EQ(s.half->open(w.identity.worker, s.key(1), ticket), comm_status::ok);
  EXPECT_EQ(s.half->expire(ticket), comm_status::sequence);
  EXPECT_TRUE(s.half->send_region(ticket, s.shape.rows_max + 1).empty());
  EXPECT_EQ(s.half->dispatch(ticket, s.shape.rows_max + 1, 0), comm_status::capacity);
  fill(s.half->send_region(ticket, 2), 4);
  EXPECT_EQ(s.half->dispatch(ticket, 2, 0), comm_status::ok);
  EXPECT_EQ(s.half->dispatch(ticket, 2, 0), comm_status::sequence);
  EXPECT_TRUE(s.half->send_region(ticket, 2).empty());
  s.half->release(ticket);  // SENT: no effect

  const arrival a = tier.receive(s, w);
  EXPECT_TRUE(holds(a.hidden, 4));
  EXPECT_EQ(w.half->give_back(0, 0, status::ok, 0), comm_status::unknown_member);
  EXPECT_EQ(w.half->give_back(a.ticket, s.shape.return_rows_max + 1, status::ok, 0),
            comm_status::capacity);
  w.answer(a, 2, 5);
  EXPECT_EQ(w.half->give_back(a.ticket, 2, status::ok, 0), comm_status::sequence);
  EXPECT_TRUE(w.half->return_region(a.ticket).empty());
  const returned r = tier.collect(s, w);
  EXPECT_TRUE(holds(r.payload, 5));
  EXPECT_EQ(s.half->expire(ticket), comm_status::sequence);
  s.half->release(ticket);
  EXPECT_EQ(s.half->dispatch(ticket, 2, 0), comm_status::sequence);
}

TEST_P(conformance, gives_up_an_open_exchange_without_a_message) {
  test_source s = tier.make_source(1);
  test_worker w = tier.make_worker(1);
  tier.attach(s, w);
  for (int round = 0; round < 10; ++round) {
    exchange_ticket ticket = 0;
    ASSERT_EQ(s.half->open(w.identity.worker, s.key(1), ticket), comm_status::ok);
    s.half->release(ticket);
  }
  tier.exchange(s, w, 2, 1);
  EXPECT_EQ(w.half->counters().messages_received, 1u);
}

// ---- many members (A, I, D) ----

TEST_P(conformance, joins_several_sources_to_several_workers) {
  std::vector<test_source> sources;
  std::vector<test_worker> workers;
  for (std::uint16_t i = 0; i < 3; ++i) sources.push_back(tier.make_source(i));
  for (std::uint16_t i = 0; i < 4; ++i) workers.push_back(tier.make_worker(i));
  for (auto& s : sources)
    for (auto& w : workers) tier.attach(s, w);

  for (std::uint64_t step = 1; step <= 20; ++step) {
    for (auto& s : sources)
      for (auto& w : workers)
        s.send(w.identity.worker, step, 1 + static_cast<std::uint32_t>(step % 8),
               100u * s.identity.source.value + w.identity.worker.value);
    std::size_t served = 0;
    std::size_t ended = 0;
    EXPECT_TRUE(happens([&] {
      for (auto& w : workers) {
        for (arrival a; w.poll_one(a); ++served) {
          const auto seed = 100u * a.source.value + w.identity.worker.value;
          EXPECT_TRUE(holds(a.hidden, seed));
          w.answer(a, a.rows, seed + 7);
        }
      }
      for (auto& s : sources) {
        for (returned r; s.poll_one(r); ++ended) {
          EXPECT_EQ(r.result, comm_status::ok);
          EXPECT_EQ(r.rows, 1 + step % 8);
          s.half->release(r.ticket);
        }
      }
      return ended == sources.size() * workers.size();
    }));
    EXPECT_EQ(served, ended);
  }
}

TEST_P(conformance, lets_an_idle_source_and_a_frozen_worker_block_nobody) {
  test_source idle = tier.make_source(1);
  test_source busy = tier.make_source(2);
  test_worker frozen = tier.make_worker(1);
  test_worker serving = tier.make_worker(2);
  for (auto* s : {&idle, &busy})
    for (auto* w : {&frozen, &serving}) tier.attach(*s, *w);
  busy.send(frozen.identity.worker, 1, 4, 1);
  busy.send(frozen.identity.worker, 1, 4, 1);
  for (std::uint64_t step = 1; step <= 100; ++step) tier.exchange(busy, serving, step, 4);
  exchange_ticket ticket = 0;
  EXPECT_EQ(busy.half->open(frozen.identity.worker, busy.key(9), ticket), comm_status::no_credit);
}

TEST_P(conformance, reports_arrivals_oldest_first) {
  source_shape shape = small_shape();
  shape.banks = 4;
  test_source s = tier.make_source(1, shape);
  test_worker w = tier.make_worker(1);
  tier.attach(s, w);
  for (std::uint64_t step = 1; step <= 4; ++step) s.send(w.identity.worker, step, 1, 1);
  for (std::uint64_t step = 1; step <= 4; ++step) EXPECT_EQ(tier.receive(s, w).key.step, step);
}

// ---- lateness ----

TEST_P(conformance, frees_the_bank_of_a_late_exchange_when_its_return_comes) {
  test_source s = tier.make_source(1);
  test_worker w = tier.make_worker(1);
  tier.attach(s, w);
  const exchange_ticket late = s.send(w.identity.worker, 1, 2, 1);
  const arrival a = tier.receive(s, w);
  EXPECT_EQ(s.half->expire(late), comm_status::ok);
  EXPECT_EQ(s.half->expire(late), comm_status::sequence);
  s.half->release(late);  // LATE: no effect
  exchange_ticket other = 0;
  exchange_ticket refused = 0;
  ASSERT_EQ(s.half->open(w.identity.worker, s.key(2), other), comm_status::ok);
  EXPECT_EQ(s.half->open(w.identity.worker, s.key(3), refused), comm_status::no_credit);

  w.answer(a, 2, 5);
  EXPECT_TRUE(happens([&] {
    returned r;
    EXPECT_FALSE(s.poll_one(r)) << "a late return is nobody's";
    std::vector<arrival> none;
    w.half->poll(none);
    return s.half->counters().late_returns == 1;
  }));
  EXPECT_EQ(s.half->open(w.identity.worker, s.key(3), refused), comm_status::ok);
}

TEST_P(conformance, keeps_late_rows_out_of_the_next_exchange) {
  const source_shape large{.rows_max = 512,
                           .hidden_stride = 4096,
                           .top_k = 2,
                           .return_stride = 4096,
                           .return_rows_max = 512,
                           .banks = 2};
  test_source s = tier.make_source(1, large);
  test_worker w = tier.make_worker(1);
  tier.attach(s, w);
  for (std::uint64_t step = 1; step <= 20; ++step) {
    const exchange_ticket late = s.send(w.identity.worker, 2 * step, 512, 1);
    const arrival a = tier.receive(s, w);
    w.answer(a, 512, 2);
    ASSERT_EQ(s.half->expire(late), comm_status::ok);
    tier.exchange(s, w, 2 * step + 1, 512);
  }
  EXPECT_TRUE(happens([&] {
    tier.settle(s, w);
    return s.half->counters().late_returns == 20;
  }));
}

// ---- membership (M, E, S) ----

TEST_P(conformance, ends_open_exchanges_when_a_worker_is_detached) {
  test_source s = tier.make_source(1);
  test_worker w = tier.make_worker(1);
  tier.attach(s, w);
  const exchange_ticket sent = s.send(w.identity.worker, 1, 1, 1);
  exchange_ticket open = 0;
  ASSERT_EQ(s.half->open(w.identity.worker, s.key(2), open), comm_status::ok);
  s.half->detach_worker(w.identity.worker);
  s.half->detach_worker(w.identity.worker);
  s.half->detach_worker(worker_id{9});

  returned r;
  ASSERT_TRUE(s.poll_one(r));
  EXPECT_EQ(r.ticket, sent);
  EXPECT_EQ(r.result, comm_status::peer_lost);
  EXPECT_FALSE(s.poll_one(r));
  EXPECT_EQ(s.half->dispatch(open, 1, 0), comm_status::peer_lost);
  EXPECT_TRUE(s.half->send_region(open, 1).empty());
  s.half->release(open);
  s.half->release(sent);
  EXPECT_EQ(s.half->open(w.identity.worker, s.key(3), open), comm_status::unknown_member);
}

TEST_P(conformance, shows_no_region_of_a_detached_worker) {
  test_source s = tier.make_source(1);
  test_worker w = tier.make_worker(1);
  tier.attach(s, w);
  const exchange_ticket ticket = s.send(w.identity.worker, 1, 1, 1);
  w.answer(tier.receive(s, w), 1, 2);
  std::vector<returned> none;
  EXPECT_TRUE(happens([&] {  // the return is in, but not handed out
    s.half->poll(none);
    return s.half->counters().messages_received == 1;
  }));
  s.half->poll(none);
  s.half->detach_worker(w.identity.worker);
  returned r;
  ASSERT_TRUE(s.poll_one(r));
  EXPECT_EQ(r.ticket, ticket);
  EXPECT_EQ(r.result, comm_status::peer_lost);
  EXPECT_TRUE(r.payload.empty());
}

TEST_P(conformance, forgets_held_arrivals_of_a_detached_source) {
  test_source s = tier.make_source(1);
  test_source other = tier.make_source(2);
  test_worker w = tier.make_worker(1);
  tier.attach(s, w);
  tier.attach(other, w);
  s.send(w.identity.worker, 1, 1, 1);
  const arrival held = tier.receive(s, w);
  s.send(w.identity.worker, 2, 1, 1);
  tier.settle(s, w);  // arrived, not taken
  w.half->detach_source(s.identity.source);
  w.half->detach_source(s.identity.source);
  EXPECT_TRUE(w.half->return_region(held.ticket).empty());
  EXPECT_EQ(w.half->give_back(held.ticket, 0, status::ok, 0), comm_status::unknown_member);
  arrival a;
  EXPECT_FALSE(w.poll_one(a));
  tier.exchange(other, w, 1, 3);
}

TEST_P(conformance, drops_frames_of_unknown_sources_and_counts_them) {
  test_source s = tier.make_source(1);
  test_worker w = tier.make_worker(1);
  ASSERT_TRUE(s.half->attach_worker(w.identity, w.half->address()));
  s.send(w.identity.worker, 1, 1, 1);
  EXPECT_TRUE(happens([&] {
    tier.settle(s, w);
    return w.half->counters().frames_dropped == 1;
  }));
  arrival a;
  EXPECT_FALSE(w.poll_one(a));
}

TEST_P(conformance, drops_frames_of_an_old_incarnation_and_serves_the_new_one) {
  test_source old_one = tier.make_source(1, small_shape(), 0x1000);
  test_worker w = tier.make_worker(1);
  tier.attach(old_one, w);
  tier.exchange(old_one, w, 1, 2);
  old_one.send(w.identity.worker, 2, 2, 1);
  const arrival held = tier.receive(old_one, w);

  test_source new_one = tier.make_source(1, small_shape(), 0x9000);
  tier.attach(new_one, w);
  EXPECT_EQ(w.half->give_back(held.ticket, 0, status::ok, 0), comm_status::unknown_member);
  exchange_ticket ticket = 0;
  if (old_one.half->open(w.identity.worker, old_one.key(3), ticket) == comm_status::ok) {
    old_one.half->dispatch(ticket, 1, 0);
    EXPECT_TRUE(happens([&] {
      tier.settle(old_one, w);
      return w.half->counters().frames_dropped > 0 || old_one.half->counters().peers_lost > 0;
    }));
  }
  arrival a;
  EXPECT_FALSE(w.poll_one(a));
  for (std::uint64_t step = 1; step <= 10; ++step) tier.exchange(new_one, w, step, 2);
}

TEST_P(conformance, takes_a_workers_new_incarnation_in_place_of_the_old_one) {
  test_source s = tier.make_source(1);
  test_worker first = tier.make_worker(1, 0x1000);
  tier.attach(s, first);
  tier.exchange(s, first, 1, 2);
  const exchange_ticket lost = s.send(first.identity.worker, 2, 2, 1);
  tier.receive(s, first);

  test_worker second = tier.make_worker(1, 0x9000);
  tier.attach(s, second);
  returned r;
  ASSERT_TRUE(s.poll_one(r));
  EXPECT_EQ(r.ticket, lost);
  EXPECT_EQ(r.result, comm_status::peer_lost);
  for (std::uint64_t step = 3; step <= 10; ++step) tier.exchange(s, second, step, 2);
}

TEST_P(conformance, is_not_moved_by_attaching_the_same_member_again) {
  test_source s = tier.make_source(1);
  test_worker w = tier.make_worker(1);
  tier.attach(s, w);
  const exchange_ticket ticket = s.send(w.identity.worker, 1, 1, 1);
  tier.attach(s, w);
  const arrival a = tier.receive(s, w);
  tier.attach(s, w);
  w.answer(a, 1, 2);
  EXPECT_EQ(tier.collect(s, w).ticket, ticket);
}

TEST_P(conformance, survives_a_worker_that_goes_away_in_mid_exchange) {
  test_source s = tier.make_source(1);
  test_worker staying = tier.make_worker(2);
  tier.attach(s, staying);
  for (std::uint64_t round = 0; round < 5; ++round) {
    test_worker going = tier.make_worker(1, 0x5000 + round);
    tier.attach(s, going);
    tier.exchange(s, going, 1, 1);
    const exchange_ticket ticket = s.send(going.identity.worker, 2, 1, 1);
    tier.receive(s, going);
    going.half.reset();
    returned r;
    ASSERT_TRUE(happens([&] { return s.poll_one(r); }));
    EXPECT_EQ(r.ticket, ticket);
    EXPECT_EQ(r.result, comm_status::peer_lost);
    s.half->release(ticket);
    exchange_ticket refused = 0;
    EXPECT_EQ(s.half->open(going.identity.worker, s.key(3), refused), comm_status::peer_lost);
    tier.exchange(s, staying, round + 10, 3);
  }
  EXPECT_EQ(s.half->counters().peers_left, 5u);
  EXPECT_EQ(s.half->counters().peers_lost, 0u);
}

TEST_P(conformance, survives_a_source_that_goes_away_while_its_rows_are_held) {
  test_worker w = tier.make_worker(1);
  test_source staying = tier.make_source(2);
  tier.attach(staying, w);
  for (std::uint64_t round = 0; round < 5; ++round) {
    test_source going = tier.make_source(1, small_shape(), 0x5000 + 16 * round);
    tier.attach(going, w);
    going.send(w.identity.worker, 1, 3, 1);
    const arrival a = tier.receive(going, w);
    going.half.reset();
    EXPECT_TRUE(happens([&] {
      std::vector<arrival> none;
      w.half->poll(none);
      return w.half->counters().peers_left == round + 1;
    }));
    EXPECT_TRUE(holds(a.hidden, 1));
    EXPECT_EQ(w.half->give_back(a.ticket, 0, status::ok, 0), comm_status::peer_lost);
    w.half->detach_source(going.identity.source);
    tier.exchange(staying, w, round + 10, 3);
  }
}

TEST_P(conformance, holds_to_its_limits_of_members) {
  test_source s = tier.make_source(1, small_shape(), 0x1000, 2);
  std::vector<test_worker> workers;
  for (std::uint16_t i = 0; i < 3; ++i) workers.push_back(tier.make_worker(i, 0x2000, 1));
  tier.attach(s, workers[0]);
  tier.attach(s, workers[1]);
  auto refused = s.half->attach_worker(workers[2].identity, workers[2].half->address());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().why, reason::limit_exceeded);
  test_source second = tier.make_source(2);
  refused = workers[0].half->attach_source(second.identity, second.shape, second.half->address());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text, "the number of attached sources is 2; at most 1");
  s.half->detach_worker(workers[0].identity.worker);
  tier.attach(s, workers[2]);
  tier.exchange(s, workers[2], 1, 1);
}

TEST_P(conformance, refuses_addresses_that_are_not_its_own) {
  test_source s = tier.make_source(1);
  test_worker w = tier.make_worker(1);
  member_address address = w.half->address();
  ASSERT_LE(address.size(), k_address_bytes_max);
  for (std::size_t i = 0; i < address.size(); i += 7) {
    member_address damaged = address;
    damaged[i] ^= std::byte{0x40};
    const auto result = s.half->attach_worker(w.identity, damaged);
    ASSERT_FALSE(result) << "byte " << i;
    EXPECT_EQ(result.error().why, reason::frame_malformed);
  }
  EXPECT_FALSE(s.half->attach_worker(w.identity, {}));
  address.resize(address.size() - 1);
  EXPECT_FALSE(s.half->attach_worker(w.identity, address));
  EXPECT_FALSE(s.half->attach_worker(w.identity, member_address(k_address_bytes_max + 1)));
}

TEST_P(conformance, refuses_shapes_outside_the_bounds) {
  const auto refused = [&](auto edit) {
    source_shape shape = small_shape();
    edit(shape);
    const auto half = tier.carrier().make_source({.identity = {}, .shape = shape});
    return !half && half.error().why == reason::invalid_argument;
  };
  EXPECT_TRUE(refused([](source_shape& s) { s.rows_max = 0; }));
  EXPECT_TRUE(refused([](source_shape& s) { s.rows_max = 65537; }));
  EXPECT_TRUE(refused([](source_shape& s) { s.hidden_stride = 0; }));
  EXPECT_TRUE(refused([](source_shape& s) { s.hidden_stride = 24; }));
  EXPECT_TRUE(refused([](source_shape& s) { s.hidden_stride = 0xfffffff0; }));
  EXPECT_TRUE(refused([](source_shape& s) { s.top_k = 0; }));
  EXPECT_TRUE(refused([](source_shape& s) { s.top_k = 257; }));
  EXPECT_TRUE(refused([](source_shape& s) { s.return_stride = 8; }));
  EXPECT_TRUE(refused([](source_shape& s) { s.return_rows_max = s.rows_max - 1; }));
  EXPECT_TRUE(refused([](source_shape& s) { s.banks = 1; }));
  EXPECT_TRUE(refused([](source_shape& s) { s.banks = 5; }));
  test_worker w = tier.make_worker(1);
  test_source s = tier.make_source(1);
  source_shape bad = small_shape();
  bad.banks = 9;
  EXPECT_FALSE(w.half->attach_source(s.identity, bad, s.half->address()));
}

// ---- waiting ----

TEST_P(conformance, sleeps_until_rows_come_and_until_a_return_comes) {
  test_source s = tier.make_source(1);
  test_worker w = tier.make_worker(1);
  tier.attach(s, w);
  constexpr std::uint64_t steps = 200;
  std::thread engine([&] {
    for (std::uint64_t served = 0; served < steps;) {
      arrival a;
      if (w.poll_one(a)) {
        w.answer(a, a.rows, 3);
        ++served;
      } else {
        w.half->wait(std::chrono::nanoseconds(0), k_patience);
      }
    }
    // The last return may need this end to move on.
    std::vector<arrival> none;
    for (int round = 0; round < 100; ++round) {
      w.half->poll(none);
      w.half->wait(std::chrono::nanoseconds(0), std::chrono::milliseconds(1));
    }
  });
  for (std::uint64_t step = 1; step <= steps; ++step) {
    const exchange_ticket ticket = s.send(w.identity.worker, step, 4, 2);
    returned r;
    EXPECT_TRUE(happens([&] {
      if (s.poll_one(r)) return true;
      s.half->wait(std::chrono::nanoseconds(0), k_patience);
      return s.poll_one(r);
    }));
    EXPECT_EQ(r.ticket, ticket);
    EXPECT_EQ(r.result, comm_status::ok);
    EXPECT_TRUE(holds(r.payload, 3));
    s.half->release(ticket);
  }
  engine.join();
}

TEST_P(conformance, ends_a_wait_by_its_limit_and_by_wake) {
  test_worker w = tier.make_worker(1);
  const auto ms = [](int n) { return std::chrono::milliseconds(n); };
  w.half->wait(ms(1), ms(5));  // nothing ever comes: returns
  w.half->wake();
  w.half->wait(ms(0), k_patience);  // woken before it slept
  std::atomic<int> woken{0};
  std::thread engine([&] {
    for (int i = 0; i < 50; ++i) {
      w.half->wait(ms(0), k_patience);
      woken.store(i + 1);
    }
  });
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(happens([&] {
    w.half->wake();
    std::this_thread::yield();
    return woken.load() == 50;
  }));
  engine.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, k_patience) << "it slept through a wake";
}

TEST_P(conformance, keeps_a_wake_that_comes_before_a_poll) {
  test_worker w = tier.make_worker(1);
  arrival a;
  w.half->wake();
  EXPECT_FALSE(w.poll_one(a));
  const auto start = std::chrono::steady_clock::now();
  w.half->wait(std::chrono::nanoseconds(0), k_patience);
  EXPECT_LT(std::chrono::steady_clock::now() - start, k_patience / 2);
}

// ---- counting ----

TEST_P(conformance, counts_messages_and_bytes_of_both_ends_alike) {
  test_source s = tier.make_source(1);
  test_worker w = tier.make_worker(1);
  tier.attach(s, w);
  for (std::uint64_t step = 1; step <= 3; ++step) tier.exchange(s, w, step, 5);
  const carrier_counters at_source = s.half->counters();
  const carrier_counters at_worker = w.half->counters();
  EXPECT_EQ(at_source.messages_sent, 3u);
  EXPECT_EQ(at_source.bytes_sent, 3 * (k_wire_header_bytes + 5 * row_bytes_of(s.shape)));
  EXPECT_EQ(at_worker.messages_received, at_source.messages_sent);
  EXPECT_EQ(at_worker.bytes_received, at_source.bytes_sent);
  EXPECT_EQ(at_worker.bytes_sent, 3 * (k_wire_header_bytes + 5 * s.shape.return_stride));
  EXPECT_EQ(at_source.bytes_received, at_worker.bytes_sent);
  EXPECT_EQ(at_source.frames_dropped + at_worker.frames_dropped, 0u);
}

// ---- the factory ----

TEST(open_carrier, names_what_lacks) {
  const auto unknown = open_carrier("pigeon", {});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().text, "the carrier is pigeon; allowed: in_process, ucx");
}

}  // namespace
}  // namespace moetier::transport
