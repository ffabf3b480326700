// Sources and workers that come, go, fail, and come again.

#include "tests/transport/carrier_conformance.hpp"

namespace moetier::transport {
namespace {

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

}  // namespace
}  // namespace moetier::transport
