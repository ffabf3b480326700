#include "tests/allocation_count.hpp"
#include "tests/transport/client/placed_tensor.hpp"
#include "tests/transport/client/session_rig.hpp"

namespace moetier::client::toy {
namespace {

TEST(device_allocation, calls_allocate_nothing_after_their_devices_first_one) {
  fake_reset();
  toy_tier tier;
  tier.driver_library = MOETIER_FAKE_DRIVER;
  const auto at = at_tier();
  moetier_service* service = nullptr;
  ASSERT_TRUE(abi::open_service(&at, &service, world_of(tier)));
  moetier_session* session = nullptr;
  ASSERT_EQ(moetier_session_open(service, nullptr, &session), MOETIER_OK);
  tier.carrier->record_keys = false;
  placed_call first(tier.shape, 1, 1);
  placed_call dense_rows(tier.shape, 16, 2);
  placed_call with_gaps(tier.shape, 9, 3, {.device = 0, .gap = 3});
  dense_rows.call.layer = 0;
  with_gaps.call.layer = 3;
  ASSERT_EQ(moetier_step_begin(session, nullptr, nullptr), MOETIER_OK);
  ASSERT_EQ(moetier_forward(session, &first.call, &first.result, nullptr), MOETIER_OK);
  ASSERT_EQ(moetier_step_end(session, nullptr, nullptr), MOETIER_OK);

  const std::size_t before = allocations.load();
  bool all_ok = true;
  for (int step = 0; step < 20; ++step) {
    fake_clear_log();
    all_ok = all_ok && moetier_step_begin(session, nullptr, nullptr) == MOETIER_OK;
    for (placed_call* c : {&dense_rows, &first, &with_gaps}) {
      all_ok = all_ok && moetier_forward(session, &c->call, &c->result, nullptr) == MOETIER_OK;
    }
    all_ok = all_ok && moetier_step_end(session, nullptr, nullptr) == MOETIER_OK;
  }
  EXPECT_EQ(allocations.load(), before);
  EXPECT_EQ(fake_pinned(), 1u);
  EXPECT_TRUE(all_ok);
  EXPECT_EQ(moetier_session_close(session), MOETIER_OK);
  EXPECT_EQ(moetier_service_close(service), MOETIER_OK);
}

}  // namespace
}  // namespace moetier::client::toy
