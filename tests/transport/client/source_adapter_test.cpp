// Adapters in the source half: rows carry the id that the caller names, ids that the snapshot does
// not list never leave, and a call with adapters is one chunk.

#include <cstring>

#include "tests/transport/client/session_rig.hpp"

namespace moetier::client::toy {
namespace {

std::function<void(transport::routing_snapshot&)> listing(std::vector<std::uint32_t> ids) {
  return [ids](transport::routing_snapshot& s) {
    s.lora = true;
    s.adapters = ids;
  };
}

std::string refusal(session_rig& rig, const inputs& in, const std::vector<std::int32_t>& adapters,
                    reason wanted = reason::lora_unsupported) {
  layer_call call = rig.call_of(in);
  call.adapter_ids = adapters;
  const auto out = rig.forward(call);
  if (out) return "computed";
  EXPECT_EQ(out.error().why, wanted);
  return out.error().text;
}

TEST(source_adapters, an_id_that_is_not_listed_is_refused_by_row_and_id) {
  session_rig rig({}, {}, listing({0, 3}));
  const inputs in(rig.shape, 4, 7);
  ASSERT_TRUE(rig.session->step_begin(false));
  EXPECT_EQ(refusal(rig, in, {-1, 0, 1, 3}), "adapters: row 2 names adapter 1; loaded: 0, 3");
  EXPECT_EQ(refusal(rig, in, {0, 0, 3, -2}), "adapters: row 3 names adapter -2; loaded: 0, 3");
  EXPECT_EQ(refusal(rig, in, {4, -1, -1, -1}), "adapters: row 0 names adapter 4; loaded: 0, 3");
  // Nothing was sent and the step is as good as before.
  EXPECT_EQ(refusal(rig, in, {-1, 0, 3, 3}), "computed");
}

TEST(source_adapters, an_adapter_loaded_inside_a_step_is_found_and_a_dropped_one_is_not) {
  session_rig rig({}, {}, listing({}));
  const inputs in(rig.shape, 2, 7);
  ASSERT_TRUE(rig.session->step_begin(false));
  EXPECT_EQ(refusal(rig, in, {0, -1}), "adapters: row 0 names adapter 0; loaded: none");
  auto next = make_snapshot(rig.shape, 1, 2);
  listing({0})(next);
  rig.publish(next);
  EXPECT_EQ(refusal(rig, in, {0, -1}), "computed");
  ASSERT_TRUE(rig.session->step_end());
  next = make_snapshot(rig.shape, 1, 3);
  listing({1, 2, 3, 4, 5, 6, 7, 8, 9})(next);
  rig.publish(next);
  ASSERT_TRUE(rig.session->step_begin(false));
  EXPECT_EQ(refusal(rig, in, {0, -1}),
            "adapters: row 0 names adapter 0; loaded: 1, 2, 3, 4, 5, 6, 7, 8, ...");
}

TEST(source_adapters, a_tier_without_them_and_a_call_of_two_chunks_are_refused) {
  session_rig off;
  const inputs in(off.shape, 4, 7);
  ASSERT_TRUE(off.session->step_begin(false));
  EXPECT_EQ(refusal(off, in, {-1, -1, -1, -1}), "adapters: this tier runs none (moe.lora is off)");
  source_session_options wish;
  wish.rows_per_chunk_max = 3;
  session_rig few({}, wish, listing({0}));
  ASSERT_TRUE(few.session->step_begin(false));
  EXPECT_EQ(refusal(few, in, {0, 0, 0, 0}, reason::lora_multichunk),
            "4 tokens with adapters need one chunk; a chunk has 3 rows");
}

}  // namespace
}  // namespace moetier::client::toy
