// The order in which a received header is judged, by frames that only a forger or a bug would send:
// each is right but for one field.

#include <set>

#include <gtest/gtest.h>

#include "tests/transport/tier_of_halves.hpp"
#include "transport/exchange/frame.hpp"
#include "transport/exchange/source_table.hpp"
#include "transport/exchange/worker_table.hpp"

namespace moetier::transport {
namespace {

constexpr source_identity k_source{source_id{3}, session_id{5}, incarnation_id{0xaaaa00000001}};
constexpr worker_identity k_worker{worker_id{4}, incarnation_id{0xbbbb00000002}};

std::shared_ptr<bank_memory> memory_for(std::size_t out_bytes, std::size_t in_bytes) {
  return *bank_memory::make({.banks = 2, .out_bytes = out_bytes, .in_bytes = in_bytes});
}

wire_header good_dispatch() {
  wire_header h = header_of(key_of_step(1, k_source.session));
  h.kind = wire_kind::dispatch;
  h.source = k_source.source.value;
  h.worker = k_worker.worker.value;
  h.sender_incarnation = low_half(k_source.incarnation);
  h.stamp = 1;
  h.rows = 2;
  h.row_bytes = row_bytes_of(small_shape());
  h.payload_bytes = 2 * h.row_bytes;
  return h;
}

constexpr time_ns now = 1'000;

class worker_side : public testing::Test {
 protected:
  worker_side() {
    table.attach(k_source, small_shape(), 1,
                 memory_for(return_bytes_max(small_shape()), dispatch_bytes_max(small_shape())));
  }
  landing admit(const wire_header& h) {
    return table.admit(encode_header(h), h.payload_bytes, now);
  }
  bool is_dropped(const wire_header& h) {
    const std::uint64_t before = table.frames_dropped();
    return !admit(h).admitted && table.frames_dropped() == before + 1 && !table.has_ready();
  }
  // The status that the half would answer with.
  status refusal_of(const wire_header& h, std::size_t bytes_seen) {
    EXPECT_FALSE(table.admit(encode_header(h), bytes_seen, now).admitted);
    arrival_ticket ticket = 0;
    status why = status::ok;
    EXPECT_TRUE(table.take_refused(ticket, why));
    worker_table::outgoing out;
    EXPECT_EQ(table.give_back(ticket, 0, why, 0, now, out), comm_status::ok);
    table.sent(ticket, now);
    return why;
  }

  worker_table table{k_worker, 4, false};
};

TEST_F(worker_side, admits_the_good_frame_once) {
  const landing to = admit(good_dispatch());
  EXPECT_TRUE(to.admitted);
  EXPECT_EQ(to.region.size(), 2 * row_bytes_of(small_shape()));
  EXPECT_TRUE(is_dropped(good_dispatch()));
  table.landed(to.place, true, now);
  table.landed(to.place, true, now);
  arrival a;
  EXPECT_TRUE(table.take(a));
  EXPECT_EQ(a.key, key_of_step(1, k_source.session));
  EXPECT_FALSE(table.take(a));
}

TEST_F(worker_side, tells_once_that_a_source_waits_no_more_for_rows_that_are_here) {
  const auto give_up = [&](std::uint32_t stamp) {
    wire_header h = good_dispatch();
    h.kind = wire_kind::abort;
    h.stamp = stamp;
    h.rows = h.row_bytes = 0;
    h.payload_bytes = 0;
    EXPECT_FALSE(admit(h).admitted);
  };
  arrival_ticket ticket = 0;
  give_up(1);  // nothing is here
  table.landed(admit(good_dispatch()).place, true, 0);
  give_up(1);
  EXPECT_FALSE(table.take_given_up(ticket)) << "before the rows were reported";
  arrival a;
  ASSERT_TRUE(table.take(a));
  give_up(1);
  give_up(3);
  ASSERT_TRUE(table.take_given_up(ticket));
  EXPECT_EQ(ticket, a.ticket);
  EXPECT_FALSE(table.take_given_up(ticket));
  worker_table::outgoing out;
  EXPECT_EQ(table.give_back(a.ticket, 0, status::cancelled, 0, 0, out), comm_status::ok)
      << "the pair itself lives";
  table.sent(a.ticket, 0);
  // One that is given back before it is told of is told of no more.
  wire_header next = good_dispatch();
  next.stamp = 2;
  table.landed(admit(next).place, true, 0);
  ASSERT_TRUE(table.take(a));
  give_up(2);
  EXPECT_EQ(table.give_back(a.ticket, 0, status::ok, 0, 0, out), comm_status::ok);
  table.sent(a.ticket, 0);
  EXPECT_FALSE(table.take_given_up(ticket));
}

TEST_F(worker_side, calls_given_up_that_nobody_asks_about_take_no_room) {
  worker_table::outgoing out;
  for (std::uint32_t stamp = 1; stamp < 4096; ++stamp) {
    wire_header h = good_dispatch();
    h.stamp = stamp;
    table.landed(admit(h).place, true, 0);
    arrival a;
    ASSERT_TRUE(table.take(a));
    h.kind = wire_kind::abort;
    h.rows = h.row_bytes = 0;
    h.payload_bytes = 0;
    EXPECT_FALSE(admit(h).admitted);
    ASSERT_EQ(table.give_back(a.ticket, 0, status::ok, 0, 0, out), comm_status::ok);
    table.sent(a.ticket, 0);
  }
}

TEST_F(worker_side, drops_strangers_before_it_looks_at_sizes) {
  const auto with = [](auto edit) {
    wire_header h = good_dispatch();
    h.rows = 1'000'000;
    edit(h);
    return h;
  };
  EXPECT_TRUE(is_dropped(with([](auto& h) { h.kind = wire_kind::give_back; })));
  EXPECT_TRUE(is_dropped(with([](auto& h) { h.kind = wire_kind::credit; })));
  EXPECT_TRUE(is_dropped(with([](auto& h) { h.source = 9; })));
  EXPECT_TRUE(is_dropped(with([](auto& h) { h.worker = 9; })));
  EXPECT_TRUE(is_dropped(with([](auto& h) { h.session = 9; })));
  EXPECT_TRUE(is_dropped(with([](auto& h) { h.sender_incarnation ^= 1; })));
  EXPECT_TRUE(is_dropped(with([](auto& h) { h.stamp = 0; })));
  EXPECT_FALSE(table.admit({}, 0, now).admitted);
}

TEST_F(worker_side, refuses_wrong_sizes_of_a_known_source_with_a_status) {
  wire_header h = good_dispatch();
  h.rows = small_shape().rows_max + 1;
  EXPECT_EQ(refusal_of(h, h.payload_bytes), status::invalid);
  h = good_dispatch();
  h.stamp = 3;
  h.row_bytes += 16;
  EXPECT_EQ(refusal_of(h, h.payload_bytes), status::invalid);
  h = good_dispatch();
  h.stamp = 5;
  h.payload_bytes += 1;
  EXPECT_EQ(refusal_of(h, h.payload_bytes), status::corrupt);
  h = good_dispatch();
  h.stamp = 7;
  EXPECT_EQ(refusal_of(h, h.payload_bytes - 1), status::corrupt);
  // A product that is right modulo 2^64 or 2^32 is not right.
  h = good_dispatch();
  h.stamp = 9;
  h.payload_bytes += std::uint64_t{1} << 32;
  EXPECT_EQ(refusal_of(h, 2 * std::size_t{h.row_bytes}), status::corrupt);
}

TEST_F(worker_side, takes_only_newer_stamps_also_across_the_wrap) {
  const auto serve = [&](std::uint32_t stamp) {
    wire_header h = good_dispatch();
    h.stamp = stamp;
    const landing to = admit(h);
    if (!to.admitted) return false;
    table.landed(to.place, true, now);
    arrival a;
    EXPECT_TRUE(table.take(a));
    worker_table::outgoing out;
    EXPECT_EQ(table.give_back(a.ticket, 0, status::ok, 0, now, out), comm_status::ok);
    table.sent(a.ticket, now);
    return true;
  };
  EXPECT_TRUE(serve(0xfffffffc));
  EXPECT_FALSE(serve(0xfffffffc));
  EXPECT_FALSE(serve(0xfffffff0));
  EXPECT_TRUE(serve(0xfffffffe));
  EXPECT_TRUE(serve(2));
  EXPECT_FALSE(serve(0xfffffffe));
}

TEST_F(worker_side, keeps_an_arrival_until_the_banks_last_return_is_sent) {
  landing to = admit(good_dispatch());
  table.landed(to.place, true, now);
  arrival first;
  ASSERT_TRUE(table.take(first));
  worker_table::outgoing out;
  ASSERT_EQ(table.give_back(first.ticket, 1, status::ok, 0, now, out), comm_status::ok);
  wire_header h = good_dispatch();
  h.stamp = 3;
  to = admit(h);
  ASSERT_TRUE(to.admitted);
  table.landed(to.place, true, now);
  arrival second;
  EXPECT_FALSE(table.take(second));
  table.sent(first.ticket, now);
  table.sent(first.ticket, now);
  EXPECT_TRUE(table.take(second));
  EXPECT_FALSE(table.take(second));
}

TEST_F(worker_side, says_its_last_returns_again_when_their_source_speaks_over_a_new_connection) {
  const landing first = admit(good_dispatch());
  table.landed(first.place, true, now);
  arrival a;
  ASSERT_TRUE(table.take(a));
  const std::byte* before = table.return_region(a.ticket).data();
  fill(table.return_region(a.ticket), 5);
  worker_table::outgoing out;
  ASSERT_EQ(table.give_back(a.ticket, 2, status::ok, 0, now, out), comm_status::ok);
  table.sent(a.ticket, now);
  table.lose(1);
  worker_table::comeback c;
  EXPECT_FALSE(table.next_comeback(c)) << "nothing says that it lives";
  wire_header h = good_dispatch();
  h.kind = wire_kind::abort;
  h.rows = h.row_bytes = 0;
  h.payload_bytes = 0;
  h.sender_incarnation ^= 1;
  EXPECT_TRUE(is_dropped(h));
  EXPECT_FALSE(table.next_comeback(c));
  h.sender_incarnation ^= 1;
  EXPECT_FALSE(admit(h).admitted);  // it waited in vain
  ASSERT_TRUE(table.next_comeback(c));
  EXPECT_EQ(c.source, k_source.source);
  EXPECT_EQ(c.lost, 1u);
  table.reached(c.source, 2);
  EXPECT_FALSE(table.next_comeback(c));
  arrival_ticket ticket = 0;
  ASSERT_TRUE(table.next_unheard(ticket, now, out));
  EXPECT_EQ(out.peer, 2u);
  EXPECT_EQ(out.payload_bytes, 2 * small_shape().return_stride);
  EXPECT_TRUE(holds(c.memory->out(out.head).first(out.payload_bytes), 5));
  EXPECT_NE(c.memory->out(out.head).data(), before) << "the lost connection's may be written to";
  wire_header sent;
  ASSERT_EQ(decode_header(c.memory->head(out.head), sent), wire_fault::none);
  EXPECT_EQ(sent.stamp, 1u);
  EXPECT_EQ(sent.rows, 2u);
  table.sent(ticket, now);
  EXPECT_FALSE(table.next_unheard(ticket, now, out));
}

TEST_F(worker_side, a_payload_that_lands_over_a_lost_connection_finds_no_newer_rows) {
  const landing late = admit(good_dispatch());
  table.lose(1);
  wire_header h = good_dispatch();
  h.stamp = 3;  // the same bank
  const landing next = admit(h);
  ASSERT_TRUE(next.admitted);
  EXPECT_NE(next.region.data(), late.region.data());
  table.landed(late.place, true, now);
  worker_table::comeback c;
  ASSERT_TRUE(table.next_comeback(c));
  table.reached(c.source, 2);
  arrival a;
  EXPECT_FALSE(table.take(a)) << "its own payload is still on its way";
  table.landed(next.place, true, now);
  ASSERT_TRUE(table.take(a));
  EXPECT_EQ(a.hidden.data(), next.region.data());
  EXPECT_FALSE(table.take(a));
}

TEST_F(worker_side, knows_by_a_newer_stamp_for_a_bank_in_use_that_the_connection_broke) {
  table.landed(admit(good_dispatch()).place, true, now);
  arrival held;
  ASSERT_TRUE(table.take(held));
  for (const std::uint32_t stamp : {3u, 5u}) {  // and again, before the source is reached
    wire_header h = good_dispatch();
    h.stamp = stamp;
    const landing next = admit(h);
    ASSERT_TRUE(next.admitted);
    EXPECT_NE(next.region.data(), held.hidden.data());
    table.landed(next.place, true, now);
  }
  EXPECT_EQ(table.peers_lost(), 1u);
  worker_table::comeback c;
  ASSERT_TRUE(table.next_comeback(c));
  table.reached(c.source, 2);
  arrival a;
  ASSERT_TRUE(table.take(a));
  EXPECT_EQ(a.hidden.data(), c.memory->in(1).data());
  EXPECT_FALSE(table.take(a));
  worker_table::outgoing out;
  EXPECT_FALSE(table.return_region(held.ticket).empty());
  EXPECT_EQ(table.give_back(held.ticket, 0, status::ok, 0, now, out), comm_status::peer_lost);
  EXPECT_EQ(table.give_back(a.ticket, 0, status::ok, 0, now, out), comm_status::ok);
  EXPECT_EQ(out.peer, 2u);
}

TEST_F(worker_side, reaches_for_a_silent_source_once) {
  const auto hold = [&](std::uint32_t stamp) {
    wire_header h = good_dispatch();
    h.stamp = stamp;
    table.landed(admit(h).place, true, now);
    arrival a;
    EXPECT_TRUE(table.take(a));
    return a.ticket;
  };
  const arrival_ticket first = hold(1);
  const arrival_ticket second = hold(2);
  table.lose(1);
  table.want_source_of(first);
  worker_table::comeback c;
  ASSERT_TRUE(table.next_comeback(c));
  table.reached(c.source, 2);
  table.lose(2);
  table.want_source_of(second);
  EXPECT_FALSE(table.next_comeback(c));
  worker_table::outgoing out;
  EXPECT_EQ(table.give_back(second, 0, status::ok, 0, now, out), comm_status::peer_lost);
  source_id told;
  EXPECT_FALSE(table.take_unreached(told)) << "its lease decides";
}

TEST_F(worker_side, counts_no_error_for_a_farewell_that_comes_after_the_detach) {
  wire_header h = good_dispatch();
  h.kind = wire_kind::abort;
  h.payload_bytes = 0;
  h.stamp = 0;
  table.detach(k_source.source);
  EXPECT_FALSE(admit(h).admitted);
  EXPECT_EQ(table.frames_dropped(), 0u);
  EXPECT_EQ(table.peers_left(), 0u);
}

TEST_F(worker_side, tells_how_long_rows_were_here_and_how_long_their_return_was_under_way) {
  const auto memory =
      memory_for(return_bytes_max(small_shape()), dispatch_bytes_max(small_shape()));
  table.detach(k_source.source);
  table.attach(k_source, small_shape(), 1, memory);
  const wire_header h = good_dispatch();
  const landing to = table.admit(encode_header(h), h.payload_bytes, 100);
  table.landed(to.place, true, 250);
  arrival a;
  ASSERT_TRUE(table.take(a));
  EXPECT_EQ(a.admitted_at, 100u);
  EXPECT_EQ(a.landed_at, 250u);
  worker_table::outgoing out;
  ASSERT_EQ(table.give_back(a.ticket, 0, status::ok, 0, 1'100, out), comm_status::ok);
  wire_header sent;
  ASSERT_EQ(decode_header(memory->head(out.head), sent), wire_fault::none);
  EXPECT_EQ(sent.budget_us, 1'000u);
  table.sent(a.ticket, 1'600);
  EXPECT_EQ(table.stall_ns(), 500u);
  // Longer than the field holds is as long as it holds.
  wire_header next = good_dispatch();
  next.stamp = 3;
  table.landed(table.admit(encode_header(next), next.payload_bytes, 2'000).place, true, 2'000);
  ASSERT_TRUE(table.take(a));
  ASSERT_EQ(table.give_back(a.ticket, 0, status::ok, 0, 2'000 + (1ull << 33), out),
            comm_status::ok);
  ASSERT_EQ(decode_header(memory->head(out.head), sent), wire_fault::none);
  EXPECT_EQ(sent.budget_us, ~0u);
}

TEST_F(worker_side, answers_under_the_number_it_is_called_by_until_it_has_one) {
  worker_table unnumbered({k_worker_unnumbered, k_worker.incarnation}, 1, false);
  unnumbered.attach(k_source, small_shape(), 1,
                    memory_for(return_bytes_max(small_shape()), dispatch_bytes_max(small_shape())));
  EXPECT_TRUE(unnumbered.farewell().empty());
  auto memory = memory_for(64, 64);
  const wire_header h = good_dispatch();
  const landing to = unnumbered.admit(encode_header(h), h.payload_bytes, now);
  ASSERT_TRUE(to.admitted);
  memory = *to.memory;
  unnumbered.landed(to.place, true, now);
  arrival a;
  ASSERT_TRUE(unnumbered.take(a));
  worker_table::outgoing out;
  ASSERT_EQ(unnumbered.give_back(a.ticket, 0, status::ok, 0, now, out), comm_status::ok);
  wire_header sent;
  ASSERT_EQ(decode_header(memory->head(out.head), sent), wire_fault::none);
  EXPECT_EQ(sent.worker, k_worker.worker.value);
  EXPECT_EQ(unnumbered.farewell().size(), 1u);
}

TEST_F(worker_side, believes_a_farewell_of_the_attached_incarnation_alone) {
  wire_header h = good_dispatch();
  h.kind = wire_kind::abort;
  h.stamp = 0;
  h.payload_bytes = 0;
  h.sender_incarnation ^= 1;
  EXPECT_TRUE(is_dropped(h));
  EXPECT_EQ(table.peers_lost(), 0u);
  h.sender_incarnation ^= 1;
  EXPECT_FALSE(admit(h).admitted);
  EXPECT_FALSE(admit(h).admitted);
  EXPECT_EQ(table.peers_left(), 1u) << "who says that it goes is not lost";
  EXPECT_EQ(table.peers_lost(), 0u);
}

class source_side : public testing::Test {
 protected:
  source_side() {
    memory = memory_for(dispatch_bytes_max(small_shape()), return_bytes_max(small_shape()));
    table.attach(k_worker, 1, memory);
  }
  exchange_ticket send(std::uint64_t step) {
    exchange_ticket ticket = 0;
    EXPECT_EQ(table.open(k_worker.worker, key_of_step(step, k_source.session), ticket),
              comm_status::ok);
    EXPECT_EQ(table.dispatch(ticket, 2, 0, out), comm_status::ok);
    table.sent(ticket);
    return ticket;
  }
  // The return that answers what was dispatched last.
  wire_header good_return() {
    wire_header h;
    EXPECT_EQ(decode_header(memory->head(out.head), h), wire_fault::none);
    h.kind = wire_kind::give_back;
    h.flags = 0;
    h.sender_incarnation = low_half(k_worker.incarnation);
    h.row_bytes = small_shape().return_stride;
    h.payload_bytes = h.rows * h.row_bytes;
    return h;
  }
  landing admit(const wire_header& h) { return table.admit(encode_header(h), h.payload_bytes); }
  bool is_dropped(const wire_header& h) {
    const std::uint64_t before = table.frames_dropped();
    return !admit(h).admitted && table.frames_dropped() == before + 1 && !table.has_ended();
  }
  comm_status end_of(const wire_header& h, std::size_t bytes_seen) {
    EXPECT_FALSE(table.admit(encode_header(h), bytes_seen).admitted);
    returned r;
    if (table.poll(std::span(&r, 1)) != 1) return comm_status::ok;
    table.release(r.ticket);
    return r.result;
  }

  source_table table{k_source, small_shape(), 4, false};
  std::shared_ptr<bank_memory> memory;
  source_table::outgoing out;
};

TEST_F(source_side, drops_returns_that_answer_nothing_it_asked) {
  send(1);
  const auto with = [&](auto edit) {
    wire_header h = good_return();
    edit(h);
    return h;
  };
  EXPECT_TRUE(is_dropped(with([](auto& h) { h.kind = wire_kind::dispatch; })));
  EXPECT_TRUE(is_dropped(with([](auto& h) { h.source = 9; })));
  EXPECT_TRUE(is_dropped(with([](auto& h) { h.worker = 9; })));
  EXPECT_TRUE(is_dropped(with([](auto& h) { h.session = 9; })));
  EXPECT_TRUE(is_dropped(with([](auto& h) { h.sender_incarnation ^= 1; })));
  EXPECT_TRUE(is_dropped(with([](auto& h) { h.stamp += 1; })));
  EXPECT_TRUE(is_dropped(with([](auto& h) { h.stamp += 2; })));
  EXPECT_TRUE(is_dropped(with([](auto& h) { h.step += 1; })));
  EXPECT_TRUE(is_dropped(with([](auto& h) { h.attempt += 1; })));
  EXPECT_TRUE(is_dropped(with([](auto& h) { h.layer += 1; })));
  EXPECT_TRUE(is_dropped(with([](auto& h) { h.chunk += 1; })));
  EXPECT_TRUE(is_dropped(with([](auto& h) { h.generation += 1; })));
  EXPECT_TRUE(is_dropped(with([](auto& h) { h.plan_hash += 1; })));
  EXPECT_TRUE(is_dropped(with([](auto& h) { h.epoch += 1; })));
  const landing to = admit(good_return());
  EXPECT_TRUE(to.admitted);
  EXPECT_TRUE(is_dropped(good_return())) << "a second return while the first is landing";
  table.landed(to.place, true);
  EXPECT_TRUE(table.has_ended());
}

TEST_F(source_side, ends_an_exchange_whose_return_has_wrong_sizes_as_corrupt) {
  send(1);
  wire_header h = good_return();
  h.rows = small_shape().return_rows_max + 1;
  EXPECT_EQ(end_of(h, h.payload_bytes), comm_status::corrupt);
  send(2);
  h = good_return();
  h.row_bytes += 16;
  EXPECT_EQ(end_of(h, h.payload_bytes), comm_status::corrupt);
  send(3);
  h = good_return();
  EXPECT_EQ(end_of(h, h.payload_bytes + 16), comm_status::corrupt);
  send(4);
  h = good_return();  // an error with rows
  h.flags = static_cast<std::uint8_t>(status::unavailable);
  EXPECT_EQ(end_of(h, h.payload_bytes), comm_status::corrupt);
}

TEST_F(source_side, reads_a_status_outside_the_list_as_internal) {
  send(1);
  wire_header h = good_return();
  h.flags = 200;
  h.rows = 0;
  h.payload_bytes = 0;
  table.landed(admit(h).place, true);
  returned r;
  ASSERT_EQ(table.poll(std::span(&r, 1)), 1u);
  EXPECT_EQ(r.worker_status, status::internal);
}

TEST_F(source_side, tells_the_worker_of_an_exchange_that_it_waits_for_no_more) {
  exchange_ticket ticket = 0;
  ASSERT_EQ(table.open(k_worker.worker, key_of_step(1, k_source.session), ticket), comm_status::ok);
  ASSERT_EQ(table.dispatch(ticket, 2, 0, out), comm_status::ok);
  wire_header dispatched;
  ASSERT_EQ(decode_header(memory->head(out.head), dispatched), wire_fault::none);
  ASSERT_EQ(table.expire(ticket), comm_status::ok);
  link_place word = 0;
  // At once, and beside the bank: the link may still read its dispatch.
  const std::uint32_t bank = out.head;
  ASSERT_TRUE(table.next_give_up(word, out));
  EXPECT_EQ(out.head, memory->layout().give_up_of(bank));
  EXPECT_EQ(out.payload_bytes, 0u);
  wire_header h;
  ASSERT_EQ(decode_header(memory->head(out.head), h), wire_fault::none);
  EXPECT_EQ(h.kind, wire_kind::abort);
  EXPECT_EQ(h.stamp, dispatched.stamp);
  EXPECT_FALSE(table.next_give_up(word, out)) << "told twice";
  // The bank is free once the dispatch is out and the late return is in, in any order.
  wire_header late = dispatched;
  late.kind = wire_kind::give_back;
  late.flags = static_cast<std::uint8_t>(status::cancelled);
  late.sender_incarnation = low_half(k_worker.incarnation);
  late.rows = 0;
  late.row_bytes = small_shape().return_stride;
  late.payload_bytes = 0;
  EXPECT_FALSE(admit(late).admitted);
  EXPECT_EQ(table.late_returns(), 0u);
  table.sent(ticket);
  EXPECT_EQ(table.late_returns(), 1u);

  // Nobody is told of one whose return is in already.
  const exchange_ticket answered = send(2);
  EXPECT_TRUE(admit(good_return()).admitted);
  ASSERT_EQ(table.expire(answered), comm_status::ok);
  EXPECT_FALSE(table.next_give_up(word, out));
}

TEST_F(source_side, does_not_write_over_the_word_that_is_under_way) {
  const exchange_ticket first = send(1);
  const std::uint32_t bank = out.head;
  wire_header answer = good_return();
  answer.rows = 0;
  answer.payload_bytes = 0;
  ASSERT_EQ(table.expire(first), comm_status::ok);
  link_place word = 0;
  ASSERT_TRUE(table.next_give_up(word, out));
  EXPECT_FALSE(admit(answer).admitted);
  send(2);
  const exchange_ticket second = send(3);
  ASSERT_EQ(out.head, bank);
  ASSERT_EQ(table.expire(second), comm_status::ok);
  link_place next = 0;
  EXPECT_FALSE(table.next_give_up(next, out));
  table.sent(word);
  EXPECT_TRUE(table.next_give_up(next, out));
  EXPECT_NE(next, word);
}

TEST_F(source_side, ends_only_when_the_send_has_let_go_of_the_bank) {
  exchange_ticket ticket = 0;
  ASSERT_EQ(table.open(k_worker.worker, key_of_step(1, k_source.session), ticket), comm_status::ok);
  ASSERT_EQ(table.dispatch(ticket, 2, 0, out), comm_status::ok);
  table.landed(admit(good_return()).place, true);
  EXPECT_FALSE(table.has_ended());
  table.sent(ticket);
  EXPECT_TRUE(table.has_ended());
  table.sent(ticket);
  returned r;
  EXPECT_EQ(table.poll(std::span(&r, 1)), 1u);
  EXPECT_EQ(table.poll(std::span(&r, 1)), 0u);
}

TEST_F(source_side, forgets_an_end_that_was_released_before_it_was_polled) {
  const exchange_ticket ticket = send(1);
  table.landed(admit(good_return()).place, true);
  table.release(ticket);
  EXPECT_FALSE(table.has_ended());
}

TEST_F(source_side, lets_stamps_go_on_when_a_worker_comes_back) {
  send(1);
  const wire_header old_return = good_return();
  table.detach(k_worker.worker);
  returned r;
  ASSERT_EQ(table.poll(std::span(&r, 1)), 1u);
  table.attach(k_worker, 2, memory);
  send(1);  // the same key, so that only the stamp can tell
  EXPECT_NE(good_return().stamp, old_return.stamp);
  EXPECT_TRUE(is_dropped(old_return));
}

TEST_F(source_side, never_gives_the_stamp_zero) {
  std::set<std::uint32_t> stamps;
  for (int i = 0; i < 1000; ++i) {
    const exchange_ticket ticket = send(1);
    const wire_header h = good_return();
    EXPECT_NE(h.stamp, 0u);
    EXPECT_TRUE(stamps.insert(h.stamp).second);
    table.landed(admit(h).place, true);
    returned r;
    ASSERT_EQ(table.poll(std::span(&r, 1)), 1u);
    table.release(ticket);
  }
}

TEST_F(source_side, says_farewell_to_none_that_it_never_called) {
  EXPECT_TRUE(table.farewell().empty());
  send(1);
  EXPECT_EQ(table.farewell().size(), 1u);
  table.detach(k_worker.worker);
  table.attach(k_worker, 2, memory);  // a new connection, over which nothing went yet
  EXPECT_TRUE(table.farewell().empty());
}

TEST_F(source_side, takes_a_farewell_for_the_loss_of_the_worker) {
  const exchange_ticket ticket = send(1);
  wire_header h = good_return();
  h.kind = wire_kind::abort;
  h.rows = 0;
  h.payload_bytes = 0;
  EXPECT_FALSE(admit(h).admitted);
  returned r;
  ASSERT_EQ(table.poll(std::span(&r, 1)), 1u);
  EXPECT_EQ(r.ticket, ticket);
  EXPECT_EQ(r.result, comm_status::peer_lost);
}

}  // namespace
}  // namespace moetier::transport
