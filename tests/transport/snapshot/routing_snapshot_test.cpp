#include "transport/snapshot/routing_snapshot.hpp"

#include <gtest/gtest.h>

#include "tests/eplb/small_placement.hpp"

namespace moetier::transport {
namespace {

routing_snapshot small_snapshot() {
  routing_snapshot s;
  s.epoch = epoch_number{4};
  s.generation = generation_number{1};
  s.plan = plan_hash{0x1122334455667788};
  s.resolution_id = 9;
  s.model = {.model_type = "qwen3_moe",
             .hidden_size = 64,
             .intermediate_size = 32,
             .experts = 4,
             .top_k = 2,
             .layers_total = 3,
             .moe_layers = {layer_id{0}, layer_id{2}},
             .routing = {.method = routing_method::renormalize_naive},
             .activation = {},
             .format = {.stored = dtype::bf16},
             .router_width = 64,
             .fingerprint = 77};
  s.routing = {.rule = s.model.routing, .experts = 4, .top_k = 2};
  s.tables = plain_tables(s.model);
  s.placement = *eplb::default_placement(4, s.model.moe_layers, eplb::spans_of({3, 3}));
  s.shares = eplb::shares::even(s.placement, {true, false}, {epoch_number{4}, 2});
  s.workers = {{worker_id{0}, incarnation_id{11}, true, {std::byte{1}, std::byte{2}}},
               {worker_id{1}, incarnation_id{12}, false, {}}};
  s.exact_allowed = true;
  s.carrier = "ucx";
  s.backend = "moetier.cpu.avx2.none";
  return s;
}

TEST(routing_snapshot, survives_its_byte_form_whole) {
  const routing_snapshot s = small_snapshot();
  const auto again = snapshot_from_bytes(to_bytes(s));
  ASSERT_TRUE(again.has_value()) << again.error().text;
  EXPECT_EQ(*again, s);
}

TEST(routing_snapshot, is_newer_by_generation_then_epoch_then_counter) {
  const routing_snapshot a = small_snapshot();
  routing_snapshot b = a;
  EXPECT_FALSE(is_newer(a, b));
  b.shares = eplb::shares::even(b.placement, {true, true}, {epoch_number{5}, 0});
  EXPECT_TRUE(is_newer(b, a));
  EXPECT_FALSE(is_newer(a, b));
  routing_snapshot c = a;
  c.generation = generation_number{2};
  EXPECT_TRUE(is_newer(c, b));
}

TEST(routing_snapshot, refuses_truncated_and_mutated_bytes_without_harm) {
  const auto good = to_bytes(small_snapshot());
  for (std::size_t n = 0; n < good.size(); ++n) {
    EXPECT_FALSE(snapshot_from_bytes(std::span<const std::byte>(good).first(n)).has_value()) << n;
  }
  for (std::size_t i = 0; i < good.size(); ++i) {
    auto bad = good;
    bad[i] ^= std::byte{0x41};
    const auto read =
        snapshot_from_bytes(bad);  // either refused, or a legal snapshot with another value
    if (read) {
      EXPECT_EQ(read->workers.size(), read->placement.spans().size());
    }
  }
}

TEST(routing_snapshot, refuses_parts_that_do_not_fit_each_other) {
  routing_snapshot s = small_snapshot();
  s.model.experts = 5;
  s.routing.experts = 5;
  EXPECT_EQ(snapshot_from_bytes(to_bytes(s)).error().text,
            "malformed message: snapshot: experts of placement and model differ");
  s = small_snapshot();
  s.model.moe_layers[1] = layer_id{1};
  EXPECT_EQ(snapshot_from_bytes(to_bytes(s)).error().text,
            "malformed message: snapshot: layers of placement and model differ");
  s = small_snapshot();
  s.workers.pop_back();
  EXPECT_EQ(snapshot_from_bytes(to_bytes(s)).error().text,
            "malformed message: snapshot: number of workers");
  const auto adapters = [](bool lora, std::vector<std::uint32_t> ids) {
    routing_snapshot with = small_snapshot();
    with.lora = lora;
    with.adapters = std::move(ids);
    const auto read = snapshot_from_bytes(to_bytes(with));
    if (!read) return read.error().text;
    return read->adapters == with.adapters ? std::string("whole") : std::string("changed");
  };
  const std::string refused = "malformed message: snapshot: adapters";
  EXPECT_EQ(adapters(true, {0, 3, 0x7fffffff}), "whole");
  EXPECT_EQ(adapters(true, {3, 3}), refused);
  EXPECT_EQ(adapters(true, {4, 3}), refused);
  EXPECT_EQ(adapters(true, {0x80000000}), refused);
  EXPECT_EQ(adapters(false, {0}), refused);
  std::vector<std::uint32_t> many(65);
  for (std::uint32_t i = 0; i < many.size(); ++i) many[i] = i;
  EXPECT_EQ(adapters(true, many), refused);
}

}  // namespace
}  // namespace moetier::transport
