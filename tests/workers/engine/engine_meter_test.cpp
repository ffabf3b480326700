// Which stage of a call gets which time, and which end its rows.
#include "workers/engine/engine_meter.hpp"

#include <gtest/gtest.h>

namespace moetier::workers {
namespace {

transport::arrival call_of(std::uint32_t rows) {
  transport::arrival a;
  a.rows = rows;
  a.admitted_at = 1'000;
  a.landed_at = 3'000;
  return a;
}

const histogram_reading& of(const engine_reading& r, work_stage s) {
  return r.stages[static_cast<std::size_t>(s)];
}

TEST(engine_meter, every_nanosecond_of_a_call_belongs_to_one_stage) {
  engine_meter m;
  served_exchange served{.experts = 3, .compute = {}, .grouped_at = 8'000, .computed_at = 18'000};
  served.compute = {.last = 18'000, .fc1_ns = 6'000, .fc2_ns = 4'000, .padding_rows = 2};
  m.count(call_of(16), served, status::ok, 7'000, 19'000);
  const engine_reading r = m.read();
  EXPECT_EQ(of(r, work_stage::receive).sum, 2'000u);
  EXPECT_EQ(of(r, work_stage::wait).sum, 4'000u);
  EXPECT_EQ(of(r, work_stage::group).sum, 1'000u);
  EXPECT_EQ(of(r, work_stage::fc1).sum, 6'000u);
  EXPECT_EQ(of(r, work_stage::fc2).sum, 4'000u);
  EXPECT_EQ(of(r, work_stage::compute).count(), 0u);
  EXPECT_EQ(of(r, work_stage::give_back).sum, 1'000u);
  std::uint64_t all = 0;
  for (const histogram_reading& stage : r.stages) all += stage.sum;
  EXPECT_EQ(all, 19'000u - 1'000u);
  EXPECT_EQ(r.batch_rows.sum, 16u);
  EXPECT_EQ(r.activated_experts.sum, 3u);
  EXPECT_EQ(r.padding_rows, 2u);
  EXPECT_EQ(r.calls[0], 1u);
}

TEST(engine_meter, a_backend_that_tells_no_stages_has_one) {
  engine_meter m;
  served_exchange served{.experts = 1, .compute = {}, .grouped_at = 8'000, .computed_at = 18'000};
  served.compute.last = 8'000;
  m.count(call_of(1), served, status::ok, 7'000, 19'000);
  EXPECT_EQ(of(m.read(), work_stage::compute).sum, 10'000u);
  EXPECT_EQ(of(m.read(), work_stage::fc1).count(), 0u);
}

TEST(engine_meter, a_refused_call_counts_its_rows_and_computes_nothing) {
  engine_meter m;
  m.count(call_of(5), {}, status::stale_generation, 7'000, 7'500);
  m.count_end(status::corrupt, 0);
  m.count_end(status::skipped, 2);  // no worker says so
  const engine_reading r = m.read();
  std::uint64_t calls = 0;
  for (std::size_t i = 0; i < k_worker_ends.size(); ++i) {
    calls += r.calls[i];
    const std::uint64_t rows = k_worker_ends[i] == status::stale_generation ? 5
                               : k_worker_ends[i] == status::internal       ? 2
                                                                            : 0;
    EXPECT_EQ(r.rows[i], rows) << status_name(k_worker_ends[i]);
  }
  EXPECT_EQ(calls, 3u);
  EXPECT_EQ(of(r, work_stage::wait).count(), 1u);
  EXPECT_EQ(of(r, work_stage::group).count(), 0u);
  EXPECT_EQ(r.batch_rows.count(), 0u);
}

TEST(engine_meter, a_turn_stalls_above_ten_milliseconds) {
  engine_meter m;
  m.count_turn(0, 10 * k_millisecond);
  m.count_turn(2, 10 * k_millisecond + 1);
  EXPECT_EQ(m.read().stalls, 1u);
  EXPECT_EQ(m.read().batch_sessions.sum, 2u);
}

}  // namespace
}  // namespace moetier::workers
