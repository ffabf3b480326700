// Adapters in the worker's control core.

#include <gtest/gtest.h>

#include "tests/workers/core_bench.hpp"

namespace moetier::workers {
namespace {

control::held_adapter red(std::uint32_t id = 0) { return {id, "red", "/red"}; }

TEST(worker_core, an_adapter_is_answered_for_once_it_is_read_and_a_repeat_changes_nothing) {
  bench b;
  b.serve();
  b.tell(control::load_adapter{epoch_number(1), red()});
  ASSERT_EQ(b.all<load_adapter>().size(), 1u);
  EXPECT_EQ(b.all<load_adapter>()[0].adapter, red());
  b.tell(control::load_adapter{epoch_number(1), red()});
  EXPECT_EQ(b.all<load_adapter>().size(), 1u);
  EXPECT_TRUE(b.said<control::adapter_state>().empty());
  b.step(adapter_load_done{red(), true, ""});
  ASSERT_EQ(b.said<control::adapter_state>().size(), 1u);
  EXPECT_EQ(b.said<control::adapter_state>()[0], (control::adapter_state{k_self, 0, true, ""}));
  b.tell(control::load_adapter{epoch_number(1), red()});
  EXPECT_EQ(b.said<control::adapter_state>().size(), 2u);
  EXPECT_EQ(b.all<load_adapter>().size(), 1u);
  b.step(link_lost{});
  b.step(link_up{});
  EXPECT_EQ(b.said<control::hello>().back().adapters, std::vector{red()});
}

TEST(worker_core, an_adapter_that_cannot_be_read_is_forgotten_and_may_be_tried_again) {
  bench b;
  b.serve();
  b.tell(control::load_adapter{epoch_number(1), red()});
  b.step(adapter_load_done{red(), false, "no such file"});
  EXPECT_EQ(b.said<control::adapter_state>()[0],
            (control::adapter_state{k_self, 0, false, "no such file"}));
  b.tell(control::load_adapter{epoch_number(1), red()});
  EXPECT_EQ(b.all<load_adapter>().size(), 2u);
  b.step(link_lost{});
  b.step(link_up{});
  EXPECT_TRUE(b.said<control::hello>().back().adapters.empty());  // it is not read yet
}

TEST(worker_core, a_drop_and_another_adapter_under_its_id_reach_the_engine_in_order) {
  bench b;
  b.serve();
  b.tell(control::load_adapter{epoch_number(1), red()});
  const control::held_adapter other{0, "other", "/other"};
  b.tell(control::load_adapter{epoch_number(1), other});
  ASSERT_EQ(b.all<drop_adapter>().size(), 1u);
  b.step(adapter_load_done{red(), true, ""});  // late: nobody's any more
  EXPECT_TRUE(b.said<control::adapter_state>().empty());
  b.step(adapter_load_done{other, true, ""});
  EXPECT_EQ(b.said<control::adapter_state>().size(), 1u);
  b.tell(control::drop_adapter{epoch_number(1), 0});
  EXPECT_EQ(b.all<drop_adapter>().size(), 2u);
  b.tell(control::drop_adapter{epoch_number(1), 0});
  EXPECT_EQ(b.all<drop_adapter>().size(), 2u);
}

TEST(worker_core, adapter_commands_of_an_older_epoch_are_refused_and_so_is_one_too_many) {
  bench b;
  b.serve();
  b.tell(control::welcome{worker_id(1), k_self, epoch_number(4), 2, 2});
  b.tell(control::load_adapter{epoch_number(3), red()});
  b.tell(control::drop_adapter{epoch_number(3), 0});
  EXPECT_TRUE(b.all<load_adapter>().empty());
  EXPECT_EQ(b.said<control::refused>().size(), 2u);
  for (std::uint32_t id = 0; id < 64; ++id) b.tell(control::load_adapter{epoch_number(4), red(id)});
  EXPECT_EQ(b.all<load_adapter>().size(), 64u);
  b.tell(control::load_adapter{epoch_number(4), red(64)});
  EXPECT_EQ(b.all<load_adapter>().size(), 64u);
  EXPECT_EQ(b.said<control::adapter_state>().back(),
            (control::adapter_state{k_self, 64, false, "64 adapters are held already"}));
}

}  // namespace
}  // namespace moetier::workers
