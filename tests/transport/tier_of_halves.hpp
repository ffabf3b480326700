#pragma once
// A small tier for tests: one carrier, sources and workers of it, and bytes that tell where they
// came from. The test drives all halves from one thread; nothing moves unless it pumps. Thread:
// owner.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "transport/communication.hpp"
#include "transport/exchange/shape.hpp"

namespace moetier::transport {

// How long a test waits for what must happen; never how long it takes.
inline constexpr auto k_patience = std::chrono::seconds(30);

// The deadline that dispatched rows carry: far beyond what an exchange takes.
inline constexpr std::uint32_t k_budget_us = 60'000'000;

inline bool happens(const std::function<bool()>& is_true) {
  const auto deadline = std::chrono::steady_clock::now() + k_patience;
  while (!is_true())
    if (std::chrono::steady_clock::now() > deadline) return false;
  return true;
}

// Byte i of a payload with this seed.
inline std::byte pattern(std::uint32_t seed, std::size_t i) {
  return static_cast<std::byte>((seed * 2654435761u + static_cast<std::uint32_t>(i) * 40503u) >>
                                13);
}

inline void fill(std::span<std::byte> bytes, std::uint32_t seed) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = pattern(seed, i);
}

inline bool holds(std::span<const std::byte> bytes, std::uint32_t seed, std::size_t first = 0) {
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] != pattern(seed, first + i)) return false;
  return true;
}

inline source_shape small_shape() {
  return {.rows_max = 8,
          .hidden_stride = 64,
          .top_k = 2,
          .return_stride = 128,
          .return_rows_max = 8,
          .banks = 2};
}

inline exchange_key key_of_step(std::uint64_t step, session_id session) {
  return {.session = session,
          .step = step,
          .attempt = 1,
          .layer = layer_id{7},
          .micro_batch = 1,
          .chunk = 2,
          .chunk_count = 3,
          .repeat_idx = 0,
          .repeat_count = 1,
          .epoch = epoch_number{11},
          .generation = generation_number{12},
          .plan = plan_hash{13},
          .resolution_id = 14,
          .return_mode = 0,
          .flags = k_flag_warmup};
}

struct test_source {
  source_identity identity;
  source_shape shape;
  std::unique_ptr<SourceHalf> half;

  exchange_key key(std::uint64_t step) const { return key_of_step(step, identity.session); }

  // open, fill by `seed`, dispatch; the ticket.
  exchange_ticket send(worker_id worker, std::uint64_t step, std::uint32_t rows,
                       std::uint32_t seed) {
    exchange_ticket ticket = 0;
    EXPECT_EQ(half->open(worker, key(step), ticket), comm_status::ok);
    EXPECT_NE(ticket, 0u);
    const auto region = half->send_region(ticket, rows);
    EXPECT_EQ(region.size(), std::size_t{rows} * row_bytes_of(shape));
    fill(region, seed);
    EXPECT_EQ(half->dispatch(ticket, rows, k_budget_us), comm_status::ok);
    return ticket;
  }

  bool poll_one(returned& out) { return half->poll(std::span(&out, 1)) == 1; }
};

struct test_worker {
  worker_identity identity;
  std::unique_ptr<WorkerHalf> half;

  bool poll_one(arrival& out) { return half->poll(std::span(&out, 1)) == 1; }

  // Gives back `rows` rows filled by `seed`.
  void answer(const arrival& a, std::uint32_t rows, std::uint32_t seed) {
    const auto region = half->return_region(a.ticket);
    ASSERT_GE(region.size(), std::size_t{rows} * a.shape->return_stride);
    fill(region.first(std::size_t{rows} * a.shape->return_stride), seed);
    EXPECT_EQ(half->give_back(a.ticket, rows, status::ok, 0), comm_status::ok);
  }
};

class tier_of_halves final {
 public:
  explicit tier_of_halves(std::unique_ptr<Communication> carrier) : carrier_(std::move(carrier)) {}

  test_source make_source(std::uint16_t id, const source_shape& shape = small_shape(),
                          std::uint64_t incarnation = 0x1111'0000'0000'0001,
                          std::uint32_t workers_max = 8) {
    test_source s{.identity = {.source = source_id{id},
                               .session = session_id{100u + id},
                               .incarnation = incarnation_id{incarnation + id}},
                  .shape = shape,
                  .half = {}};
    auto half =
        carrier_->make_source({.identity = s.identity, .shape = shape, .workers_max = workers_max});
    EXPECT_TRUE(half) << half.error().text;
    s.half = std::move(*half);
    return s;
  }

  test_worker make_worker(std::uint16_t id, std::uint64_t incarnation = 0x2222'0000'0000'0001,
                          std::uint32_t sources_max = 8,
                          std::shared_ptr<RowMemoryWatch> row_memory = {}) {
    test_worker w{
        .identity = {.worker = worker_id{id}, .incarnation = incarnation_id{incarnation + id}},
        .half = {}};
    auto half = carrier_->make_worker(
        {.identity = w.identity, .sources_max = sources_max, .row_memory = std::move(row_memory)});
    EXPECT_TRUE(half) << half.error().text;
    w.half = std::move(*half);
    return w;
  }

  static void attach(test_source& s, test_worker& w) {
    auto here = w.half->attach_source(s.identity, s.shape, s.half->address());
    EXPECT_TRUE(here) << here.error().text;
    auto there = s.half->attach_worker(w.identity, w.half->address());
    EXPECT_TRUE(there) << there.error().text;
  }

  // Pumps both ends until the worker has an arrival.
  static arrival receive(test_source& s, test_worker& w) {
    arrival a;
    std::vector<returned> none;
    EXPECT_TRUE(happens([&] { return s.half->poll(none), w.poll_one(a); }));
    return a;
  }

  // Pumps both ends until the source has a return.
  static returned collect(test_source& s, test_worker& w) {
    returned r;
    std::vector<arrival> none;
    EXPECT_TRUE(happens([&] { return w.half->poll(none), s.poll_one(r); }));
    return r;
  }

  // Pumps both ends until nothing can be on its way any more.
  static void settle(test_source& s, test_worker& w) {
    std::vector<returned> no_returns;
    std::vector<arrival> no_arrivals;
    for (int round = 0; round < 200; ++round) {
      s.half->poll(no_returns);
      w.half->poll(no_arrivals);
    }
  }

  // One whole exchange; the rows that the worker saw and the source got are checked.
  static void exchange(test_source& s, test_worker& w, std::uint64_t step, std::uint32_t rows) {
    const auto seed = static_cast<std::uint32_t>(step * 7 + 1);
    const exchange_ticket ticket = s.send(w.identity.worker, step, rows, seed);
    const arrival a = receive(s, w);
    ASSERT_NE(a.ticket, 0u);
    EXPECT_EQ(a.source, s.identity.source);
    EXPECT_EQ(a.key, s.key(step));
    EXPECT_EQ(a.rows, rows);
    // What it waited on its way is taken off.
    EXPECT_LE(a.budget_us, k_budget_us);
    EXPECT_GT(a.budget_us, k_budget_us / 2);
    ASSERT_NE(a.shape, nullptr);
    EXPECT_EQ(*a.shape, s.shape);
    EXPECT_EQ(a.hidden.size(), std::size_t{rows} * s.shape.hidden_stride);
    EXPECT_EQ(a.records.size(), std::size_t{rows} * record_stride(s.shape.top_k));
    EXPECT_TRUE(holds(a.hidden, seed));
    EXPECT_TRUE(holds(a.records, seed, a.hidden.size()));
    w.answer(a, rows, seed + 1);
    const returned r = collect(s, w);
    EXPECT_EQ(r.ticket, ticket);
    EXPECT_EQ(r.result, comm_status::ok);
    EXPECT_EQ(r.worker_status, status::ok);
    EXPECT_EQ(r.rows, rows);
    EXPECT_EQ(r.payload.size(), std::size_t{rows} * s.shape.return_stride);
    EXPECT_TRUE(holds(r.payload, seed + 1));
    s.half->release(ticket);
  }

  Communication& carrier() { return *carrier_; }

 private:
  std::unique_ptr<Communication> carrier_;
};

}  // namespace moetier::transport
