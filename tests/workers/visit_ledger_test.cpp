#include "workers/layer/visit_ledger.hpp"

#include <string>

#include <gtest/gtest.h>

namespace moetier::workers {
namespace {

class recording_hooks final : public LayerHooks {
 public:
  void layer_enter(const layer_visit& v) override { note("enter", v); }
  void layer_ready(const layer_visit& v) override { note("ready", v); }
  void weights_done(const layer_visit& v) override { note("done", v); }
  void layer_exit(const layer_visit& v) override { note("exit", v); }
  std::string text;

 private:
  void note(const char* what, const layer_visit& v) {
    text += std::string(what) + std::to_string(v.layer_index) + " ";
  }
};

transport::exchange_key key(std::uint64_t step, std::uint16_t chunk = 0, std::uint16_t chunks = 1,
                            std::uint16_t repeat = 0, std::uint16_t repeats = 1) {
  transport::exchange_key k;
  k.step = step;
  k.chunk = chunk;
  k.chunk_count = chunks;
  k.repeat_idx = repeat;
  k.repeat_count = repeats;
  k.generation = generation_number{1};
  return k;
}

struct visit_ledger_test : ::testing::Test {
  recording_hooks hooks;
  visit_ledger ledger{4, hooks};
  source_id source{1};
  void SetUp() override { ledger.attach(source, 3); }
  bool take(const transport::exchange_key& k, std::uint32_t layer) {
    if (!ledger.begin(source, k, layer)) return false;
    ledger.end(source, k);
    return true;
  }
};

TEST_F(visit_ledger_test, runs_each_hook_once_per_layer_in_order_over_chunks_and_repeats) {
  for (std::uint16_t repeat = 0; repeat < 2; ++repeat) {
    for (std::uint16_t chunk = 0; chunk < 3; ++chunk) {
      ASSERT_TRUE(take(key(1, chunk, 3, repeat, 2), 2));
    }
  }
  EXPECT_EQ(hooks.text, "enter2 ready2 done2 exit2 ");
}

TEST_F(visit_ledger_test, ends_a_visit_whose_last_chunk_had_no_rows_here_when_its_source_moves_on) {
  ASSERT_TRUE(take(key(1, 0, 2), 0));
  EXPECT_EQ(hooks.text, "enter0 ready0 ");
  ASSERT_TRUE(take(key(1), 1));
  EXPECT_EQ(hooks.text, "enter0 ready0 done0 exit0 enter1 ready1 done1 exit1 ");
}

TEST_F(visit_ledger_test, takes_each_exchange_once_and_refuses_what_goes_back) {
  ASSERT_TRUE(take(key(5, 1, 3), 0));
  EXPECT_FALSE(take(key(5, 1, 3), 0));
  EXPECT_TRUE(take(key(5, 0, 3), 0));
  EXPECT_FALSE(take(key(4), 1));
  auto replay = key(5, 1, 3);
  replay.attempt = 1;
  EXPECT_TRUE(take(replay, 0));
  EXPECT_FALSE(take(key(5, 2, 3), 0)) << "an older attempt came back";
  EXPECT_TRUE(take(key(6, 0, 1, 1, 2), 1));
  EXPECT_FALSE(take(key(6, 0, 1, 0, 2), 1)) << "a repeat fell";
}

TEST_F(visit_ledger_test, refuses_numbers_out_of_bounds) {
  EXPECT_FALSE(take(key(1, 1, 1), 0));
  EXPECT_FALSE(take(key(1, 0, 0), 0));
  EXPECT_FALSE(take(key(1, 0, k_chunks_max + 1), 0));
  EXPECT_TRUE(take(key(1, k_chunks_max - 1, k_chunks_max), 0));
  EXPECT_FALSE(take(key(1, 0, 1, 1, 1), 0));
  EXPECT_FALSE(take(key(1), 3));
  auto lane = key(1);
  lane.micro_batch = k_micro_batches_max;
  EXPECT_FALSE(take(lane, 0));
  EXPECT_FALSE(ledger.begin(source_id{0}, key(1), 0)) << "not attached";
  EXPECT_FALSE(ledger.begin(source_id{9}, key(1), 0)) << "no such place";
}

TEST_F(visit_ledger_test, keeps_micro_batches_and_sources_apart) {
  ledger.attach(source_id{2}, 3);
  auto other_lane = key(1, 0, 2);
  other_lane.micro_batch = 1;
  ASSERT_TRUE(take(key(1, 0, 2), 0));
  ASSERT_TRUE(take(other_lane, 1));
  ASSERT_TRUE(ledger.begin(source_id{2}, key(9, 0, 2), 2));
  EXPECT_EQ(hooks.text, "enter0 ready0 enter1 ready1 enter2 ready2 ");
  ledger.detach(source);
  EXPECT_EQ(hooks.text, "enter0 ready0 enter1 ready1 enter2 ready2 done0 exit0 done1 exit1 ");
}

TEST_F(visit_ledger_test, a_new_incarnation_starts_clean) {
  ASSERT_TRUE(take(key(7), 0));
  ledger.attach(source, 3);
  EXPECT_TRUE(take(key(1), 0));
}

}  // namespace
}  // namespace moetier::workers
