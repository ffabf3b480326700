#include "transport/client/source/avoided_workers.hpp"

#include <gtest/gtest.h>

// Whom a session spares: by the coordinator's word, and by what it saw itself.
namespace moetier::client {
namespace {

transport::routing_snapshot three_workers() {
  transport::routing_snapshot s;
  for (std::uint16_t w = 1; w <= 3; ++w) {
    s.workers.push_back({worker_id{w}, incarnation_id{w * 10u}, true, {}});
  }
  return s;
}

transport::suspicion_ptr suspect(std::uint16_t worker, std::uint64_t incarnation) {
  transport::suspicion told;
  told.workers.push_back({worker_id{worker}, incarnation_id{incarnation}});
  return std::make_shared<const transport::suspicion>(std::move(told));
}

TEST(avoided_workers, a_suspect_is_a_span_of_the_snapshot_if_it_is_that_incarnation) {
  avoided_workers avoided;
  avoided.hear(suspect(2, 20), three_workers());
  EXPECT_EQ(avoided.at(0), 0b010u);
  avoided.hear(suspect(2, 21), three_workers());
  EXPECT_EQ(avoided.at(0), 0u);
}

TEST(avoided_workers, a_suspicion_withdrawn_with_a_new_snapshot_is_gone) {
  avoided_workers avoided;
  avoided.hear(suspect(3, 30), three_workers());
  avoided.renumber();
  avoided.hear(nullptr, three_workers());
  EXPECT_EQ(avoided.at(0), 0u);
}

TEST(avoided_workers, one_that_stays_is_found_under_the_new_numbers) {
  avoided_workers avoided;
  const auto told = suspect(3, 30);
  avoided.hear(told, three_workers());
  transport::routing_snapshot next = three_workers();
  next.workers.erase(next.workers.begin());
  avoided.renumber();
  avoided.hear(told, next);
  EXPECT_EQ(avoided.at(0), 0b010u);
}

TEST(avoided_workers, a_late_one_is_spared_for_a_while_and_joined_by_others) {
  avoided_workers avoided;
  avoided.note_late(0, 100);
  avoided.note_late(2, 200);
  EXPECT_EQ(avoided.at(200 + k_late_kept - 1), 0b101u);
  EXPECT_EQ(avoided.at(200 + k_late_kept), 0u);
  avoided.note_late(1, 300 + k_late_kept);  // the earlier ones were forgiven
  EXPECT_EQ(avoided.at(300 + k_late_kept), 0b010u);
  avoided.forget_late();
  EXPECT_EQ(avoided.at(300 + k_late_kept), 0u);
}

}  // namespace
}  // namespace moetier::client
