#include "eplb/load/load_history.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/eplb/small_placement.hpp"

namespace moetier::eplb {
namespace {

constexpr generation_number k_first{1};
constexpr generation_number k_second{2};
constexpr plan_hash k_hash{77};

// Two workers with two slots, three experts; generation 2 has other experts in the same slots.
placement placed(std::vector<std::int32_t> experts) {
  return *placement::make(3, spans_of({2, 2}), {{layer_id{0}, std::move(experts)}});
}

load_history history() {
  load_history h(3, 1);
  h.know(epoch_number{5}, k_first, k_hash, placed({0, 1, 2, 0}));
  return h;
}

load_report report(std::uint64_t first_step, std::vector<std::uint64_t> counts,
                   generation_number g = k_first, std::uint16_t worker = 0) {
  return {{epoch_number{5}, g, k_hash, first_step, first_step + 31},
          worker_id{worker},
          std::move(counts),
          {}};
}

std::vector<std::uint64_t> list(std::span<const std::uint64_t> s) { return {s.begin(), s.end()}; }

TEST(load_history, sums_workers_and_turns_slots_into_experts) {
  load_history h = history();
  EXPECT_EQ(h.add(report(0, {5, 7})), report_verdict::taken);
  EXPECT_EQ(h.add(report(0, {2, 4}, k_first, 1)), report_verdict::taken);
  EXPECT_EQ(list(h.running(0)), (std::vector<std::uint64_t>{9, 7, 2}));
}

TEST(load_history, survives_a_commit) {
  load_history h = history();
  h.add(report(0, {5, 7}));
  h.know(epoch_number{5}, k_second, k_hash, placed({2, 1, 0, 1}));
  EXPECT_EQ(h.add(report(32, {1, 1}, k_second)), report_verdict::taken);
  EXPECT_EQ(list(h.running(0)), (std::vector<std::uint64_t>{5, 8, 1}));
}

TEST(load_history, fades_past_windows_by_half) {
  load_history h = history();
  h.add(report(0, {100, 100}));
  h.advance(64);
  EXPECT_EQ(list(h.faded(0)), (std::vector<std::uint64_t>{25600, 25600, 0}));
  h.add(report(64, {101, 99}));
  h.advance(128);
  EXPECT_EQ(list(h.faded(0)), (std::vector<std::uint64_t>{25728, 25472, 0}));
  EXPECT_FALSE(h.switched(0));
  EXPECT_NEAR(h.last_drift(0), 0.005, 1e-9);
}

TEST(load_history, restarts_the_mean_after_a_switch_and_marks_older_samples) {
  load_history h = history();
  load_report r = report(0, {1000, 0});
  r.samples.push_back({8, {100, 0}});
  h.add(r);
  r = report(64, {0, 1000});
  r.samples.push_back({64, {0, 100}});
  h.add(r);
  EXPECT_EQ(h.samples(0, 4).size(), 2U);
  h.advance(128);
  EXPECT_TRUE(h.switched(0));
  EXPECT_EQ(list(h.faded(0)), (std::vector<std::uint64_t>{0, 256000, 0}));
  const auto samples = h.samples(0, 4);
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(samples[0].loads[1], 100U);
}

TEST(load_history, counts_samples_of_the_running_window_twice_and_leaves_small_ones_out) {
  load_history h = history();
  load_report r = report(0, {400, 0});
  r.samples.push_back({0, {39, 0}});  // below 10 for each of 4 slots
  r.samples.push_back({8, {40, 0}});
  h.add(r);
  ASSERT_EQ(h.samples(0, 4).size(), 1U);
  EXPECT_EQ(h.samples(0, 4)[0].weight, 2U);
  h.advance(64);
  EXPECT_EQ(h.samples(0, 4)[0].weight, 1U);
}

TEST(load_history, keeps_twelve_samples) {
  load_history h = history();
  for (std::uint64_t step = 0; step < 160; step += 32) {
    load_report r = report(step, {100, 0});
    for (std::uint64_t s = step; s < step + 32; s += 8) r.samples.push_back({s, {100, 0}});
    h.add(r);
  }
  EXPECT_EQ(h.samples(0, 4).size(), 12U);
}

TEST(load_history, takes_a_late_report_of_the_last_window_as_if_it_had_been_in_time) {
  for (const bool late : {false, true}) {
    load_history h = history();
    h.add(report(0, {100, 100}));
    h.advance(64);
    h.add(report(64, {60, 60}));
    if (!late) h.add(report(96, {40, 42}));
    h.advance(128);
    if (late) {
      EXPECT_EQ(h.add(report(96, {40, 42})), report_verdict::taken);
    }
    EXPECT_EQ(list(h.faded(0)), (std::vector<std::uint64_t>{25600, 25856, 0})) << late;
    EXPECT_EQ(list(h.last_window(0)), (std::vector<std::uint64_t>{100, 102, 0})) << late;
  }
}

TEST(load_history, drops_and_counts_by_reason) {
  load_history h = history();
  const auto expect = [&](const load_report& r, report_verdict v) {
    const auto before = list(h.running(0));
    EXPECT_EQ(h.add(r), v) << report_verdict_name(v);
    EXPECT_EQ(h.count(v), 1U) << report_verdict_name(v);
    if (v != report_verdict::taken) {
      EXPECT_EQ(list(h.running(0)), before);
    }
  };
  expect(report(320, {1, 1}), report_verdict::taken);
  expect(report(320, {1, 1}), report_verdict::repeated);
  expect(report(32, {1, 1}), report_verdict::before_ring);
  expect(report(352, {1, 1}, generation_number{9}), report_verdict::generation_unknown);
  load_report r = report(352, {1, 1});
  r.tag.epoch = epoch_number{4};
  expect(r, report_verdict::epoch_older);
  r = report(352, {1, 1});
  r.tag.plan = plan_hash{78};
  expect(r, report_verdict::plan_differs);
  expect(report(352, {1, 1, 1}), report_verdict::shape_differs);
  h.release(k_first);
  expect(report(352, {1, 1}), report_verdict::generation_released);
}

// Late, doubled, lost and reordered: the sums are those of the reports that came, once each.
TEST(load_history, does_not_depend_on_the_order_of_reports) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<load_report> sent;
    std::vector<std::uint64_t> running(3, 0), last(3, 0);
    for (std::uint64_t step = 0; step < 256; step += 32) {
      for (const std::uint16_t worker : {std::uint16_t{0}, std::uint16_t{1}}) {
        if (random() % 5 == 0) continue;  // lost
        const std::vector<std::uint64_t> counts{random() % 100, random() % 100};
        sent.push_back(report(step, counts, k_first, worker));
        auto* sums = step >= 192 ? &running : step >= 128 ? &last : nullptr;
        if (sums == nullptr) continue;
        (*sums)[worker == 0 ? 0 : 2] += counts[0];
        (*sums)[worker == 0 ? 1 : 0] += counts[1];
      }
    }
    load_history h = history();
    h.advance(192);
    const std::size_t once = sent.size();
    for (std::size_t i = 0; i < once; ++i)
      if (random() % 3 == 0) sent.push_back(sent[i]);  // doubled
    std::shuffle(sent.begin(), sent.end(), random);
    for (const load_report& r : sent) h.add(r);
    EXPECT_EQ(list(h.running(0)), running) << "seed " << seed;
    EXPECT_EQ(list(h.last_window(0)), last) << "seed " << seed;
    std::uint64_t all = 0;
    for (std::size_t v = 0; v < k_report_verdicts; ++v) all += h.count(report_verdict(v));
    EXPECT_EQ(all, sent.size()) << "seed " << seed;
  }
}

TEST(load_history, refuses_steps_that_no_window_or_sample_has) {
  load_history h = history();
  load_report r = report(48, {1, 1});  // to step 79: over the window's end
  EXPECT_EQ(h.add(r), report_verdict::shape_differs);
  r = report(0, {1, 1});
  r.samples.push_back({9, {1, 1}});
  EXPECT_EQ(h.add(r), report_verdict::shape_differs);
  r.samples[0].step = 40;
  EXPECT_EQ(h.add(r), report_verdict::shape_differs);
  r = report(0, {1, 1}, k_first, 7);
  EXPECT_EQ(h.add(r), report_verdict::shape_differs);
}

TEST(load_history, learns_nothing_from_idle_windows) {
  load_history h = history();
  h.add(report(0, {100, 100}));
  h.advance(64 * 1'000'000'000'000);
  EXPECT_EQ(list(h.faded(0)), (std::vector<std::uint64_t>{25600, 25600, 0}));
}

}  // namespace
}  // namespace moetier::eplb
