#include "tests/allocation_count.hpp"
#include "tests/transport/client/session_rig.hpp"

namespace moetier::client::toy {
namespace {

TEST(source_allocation, a_layers_path_allocates_nothing_after_open) {
  for (const auto mode : {kernels::return_mode::partial, kernels::return_mode::exact}) {
    session_rig rig({}, {.micro_batches = 2, .mode = mode, .rows_per_chunk_max = 3});
    rig.carrier.record_keys = false;
    std::vector<inputs> in;
    for (unsigned i = 0; i < 8; ++i) in.emplace_back(rig.shape, i == 0 ? 0 : 2 * i, i);
    std::vector<float> logits(16 * 8, 0.25F);
    std::vector<float> out(16 * rig.shape.hidden_size);
    const std::size_t before = allocations.load();
    bool all_ok = true;
    for (int step = 0; step < 20; ++step) {
      all_ok = all_ok && rig.session->step_begin(false).has_value();
      for (const std::uint16_t layer : std::initializer_list<std::uint16_t>{0, 2, 3}) {
        for (std::uint16_t u = 0; u < 2; ++u) {
          const inputs& mine = in[static_cast<std::size_t>(step + layer + u) % 8];
          layer_call call = rig.call_of(mine);
          call.layer = layer_id(layer);
          call.micro_batch = u;
          if (step % 2 == 1) {
            call.ids = {};
            call.weights = {};
            call.logits = logits.data();
            call.logits_pitch = 32;
          }
          all_ok = all_ok && rig.session->submit(call).has_value();
        }
        for (std::uint16_t u = 0; u < 2; ++u) {
          all_ok = all_ok && rig.session
                                 ->collect(u, {.output = out.data(),
                                               .pitch = rig.shape.hidden_size * sizeof(float)})
                                 .has_value();
        }
      }
      all_ok = all_ok && rig.session->step_end().has_value();
    }
    EXPECT_EQ(allocations.load(), before);
    EXPECT_TRUE(all_ok);
  }
}

}  // namespace
}  // namespace moetier::client::toy
