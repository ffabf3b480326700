#include "eplb/partition.hpp"

#include <gtest/gtest.h>

#include "eplb/placement.hpp"

namespace moetier::eplb {
namespace {

using resolution::deployment;

std::vector<std::uint32_t> borders(partition p) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t w = 0; w < p.workers; ++w) all.push_back(p.first(w));
  all.push_back(p.first(p.workers - 1) + p.size(p.workers - 1));
  return all;
}

TEST(partition, gives_the_documented_vectors) {
  EXPECT_EQ(borders({256, 6}), (std::vector<std::uint32_t>{0, 43, 86, 129, 172, 214, 256}));
  EXPECT_EQ(borders({10, 4}), (std::vector<std::uint32_t>{0, 3, 6, 8, 10}));
  EXPECT_EQ(borders({7, 3}), (std::vector<std::uint32_t>{0, 3, 5, 7}));
}

TEST(partition, finds_the_worker_of_every_slot) {
  for (std::uint32_t experts = 1; experts <= 70; ++experts) {
    for (std::uint32_t workers = 1; workers <= experts; ++workers) {
      const partition p{experts, workers};
      for (std::uint32_t w = 0; w < workers; ++w) {
        for (std::uint32_t s = p.first(w); s < p.first(w) + p.size(w); ++s)
          ASSERT_EQ(p.worker_of(s), w) << experts << " over " << workers << ", slot " << s;
      }
      ASSERT_EQ(even_partition(experts, workers).back(), p.size(workers - 1));
    }
  }
}

std::string said(std::uint32_t experts, deployment d, bool uneven_allowed) {
  const auto v = check_partition(experts, d, uneven_allowed);
  if (!v) return v.error().text;
  return v->eligible() ? "eligible" : std::string(reject_name(v->why)) + ": " + v->detail;
}

TEST(partition_check, takes_even_slots_and_uneven_ones_where_both_sides_do) {
  EXPECT_EQ(said(8, {.workers = 4, .num_slots = 8}, false), "eligible");
  EXPECT_EQ(said(10, {.workers = 4, .num_slots = 10}, true), "eligible");
  EXPECT_EQ(said(10, {.workers = 4, .num_slots = 10}, false),
            "slots_not_divisible: 10 slots over 4 workers are uneven; take 12 slots with replicas, "
            "or 5 workers");
}

TEST(partition_check, refuses_what_no_backend_could_divide) {
  EXPECT_EQ(said(4, {.workers = 8, .num_slots = 4}, true),
            "4 experts cannot be divided over 8 workers: give at most 4 workers, or 8 slots with "
            "replicas");
  EXPECT_EQ(said(8, {.workers = 2, .num_slots = 12}, true),
            "8 experts cannot be divided over 2 workers: 12 slots per layer over all workers; "
            "without replicas it takes 8: give each worker 4 slots, or turn replicas on");
  EXPECT_EQ(said(256, {.workers = 32, .num_slots = 64}, true),
            "256 experts cannot be divided over 32 workers: 64 slots per layer over all workers; "
            "without replicas it takes 256: give each worker 8 slots");
  EXPECT_EQ(said(10, {.workers = 4, .num_slots = 8}, true),
            "10 experts cannot be divided over 4 workers: 8 slots per layer over all workers; "
            "without replicas it takes 10: give each worker at least 3 slots, with replicas");
}

TEST(partition_check, wants_with_replicas_a_slot_for_every_expert_and_every_worker) {
  EXPECT_EQ(said(8, {.workers = 4, .num_slots = 12, .eplb = true}, false), "eligible");
  EXPECT_EQ(said(4, {.workers = 8, .num_slots = 8, .eplb = true}, false), "eligible");
  EXPECT_EQ(said(10, {.workers = 4, .num_slots = 8, .eplb = true}, false),
            "10 experts cannot be divided over 4 workers: 8 slots per layer over all workers are "
            "too few; give each worker at least 3, 12 in all");
  EXPECT_EQ(said(4, {.workers = 8, .num_slots = 4, .eplb = true}, false),
            "4 experts cannot be divided over 8 workers: 4 slots per layer over all workers are "
            "too few; give each worker at least 1, 8 in all");
}

TEST(partition_check, wants_uneven_replicas_listed_worker_by_worker) {
  deployment d{.workers = 4, .num_slots = 10, .eplb = true};
  const std::string remedy =
      "slots_not_divisible: 10 slots over 4 workers are uneven; take 12 slots with replicas, or 4 "
      "workers";
  EXPECT_EQ(said(8, d, true), remedy);
  d.slots_per_worker = {4, 2, 2, 2};
  EXPECT_EQ(said(8, d, true), "eligible");
  EXPECT_EQ(said(8, d, false), remedy);
}

}  // namespace
}  // namespace moetier::eplb
