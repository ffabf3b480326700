// Rows and shapes, statuses and counts: the bytes that arrive are the bytes that were sent.

#include <algorithm>

#include "tests/transport/carrier_conformance.hpp"

namespace moetier::transport {
namespace {

INSTANTIATE_TEST_SUITE_P(
    carriers, conformance,
    testing::Values(carrier_case{"in_process", false}, carrier_case{"in_process", true},
                    carrier_case{"shared_memory", false}, carrier_case{"shared_memory", true},
                    carrier_case{"ucx", false}, carrier_case{"ucx", true}),
    [](const auto& about) {
      return std::string(about.param.name) + (about.param.checksum ? "_checked" : "");
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

// ---- rows and shapes (H, Z, O, F) ----

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
  EXPECT_EQ(unknown.error().text, "the carrier is pigeon; allowed: in_process, shared_memory, ucx");
}

}  // namespace
}  // namespace moetier::transport
