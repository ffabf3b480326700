// What cuda_ref answers without a device; what it computes is in cuda_ref_layer_device_test.cpp.
#include "kernels/cuda/cuda_ref_layer.hpp"

#include <gtest/gtest.h>

namespace moetier::kernels::cuda {
namespace {

constexpr expert_shape k_odd{.hidden_size = 37,
                             .intermediate_size = 53,
                             .activation = activation_kind::swiglu_bias,
                             .bias = true};

TEST(cuda_ref_layer, names_its_format_and_takes_canonical_pages) {
  const cuda_ref_layer layer(k_odd, {});
  EXPECT_EQ(layer.identity(), "moetier.cuda.ref.none");
  EXPECT_EQ(layer.layout_id(), "canonical.bf16.bias");
  EXPECT_EQ(layer.page_bytes(), canonical_page(k_odd).bytes());
  EXPECT_TRUE(layer.row_invariant());
  const cuda_ref_layer fp8({.hidden_size = 128,
                            .intermediate_size = 256,
                            .format = {.quant = quant_kind::fp8_block},
                            .activation = activation_kind::gelu},
                           {});
  EXPECT_EQ(fp8.identity(), "moetier.cuda.ref.fp8_block");
  EXPECT_EQ(fp8.layout_id(), "canonical.fp8_block.ungated");
}

TEST(cuda_ref_layer, needs_f32_intermediates_and_outputs_of_every_entry) {
  const cuda_ref_layer layer(k_odd, {});
  // 6 entries: 6 * 53 * 4 = 1272 to 1280 bytes, and 6 * 37 * 4.
  EXPECT_EQ(layer.workspace_bytes({.rows_cap = 3, .k_in = 2, .slots = 1}), 1280u + 888);
  EXPECT_EQ(layer.workspace_bytes({.rows_cap = 0, .k_in = 2, .slots = 1}), 0u);
}

TEST(cuda_ref_layer, refuses_a_short_workspace_and_launches_nothing_for_no_rows) {
  const cuda_ref_layer layer(k_odd, {});
  EXPECT_TRUE(layer.group({}, nullptr).ok());
  EXPECT_TRUE(layer.compute({}, nullptr).ok());
  std::byte byte{};
  std::uint32_t word = 0;
  std::int32_t slot = 0;
  float weight = 0;
  const std::byte* page = &byte;
  std::byte room[1024];
  layer_call call{.rows = &byte,
                  .rows_live = &word,
                  .rows_cap = 1,
                  .k_in = 1,
                  .slot_ids = &slot,
                  .weights = &weight,
                  .pages = &page,
                  .slots = 1,
                  .out = &byte,
                  .workspace = {room, layer.workspace_bytes({1, 1, 1}) - 1},
                  .status = &word};
  EXPECT_EQ(layer.group(call, nullptr).error, launch_status::k_refused);
  EXPECT_EQ(layer.compute(call, nullptr).error, launch_status::k_refused);
}

TEST(cuda_ref_launch, gives_a_block_64_outputs_of_a_row_up_to_eight_blocks_a_multiprocessor) {
  EXPECT_EQ(plan_ref_grid(3, 128, {}), 6u);
  EXPECT_EQ(plan_ref_grid(3, 129, {}), 9u);
  EXPECT_EQ(plan_ref_grid(0, 129, {}), 1u);
  EXPECT_EQ(plan_ref_grid(1u << 30, 7168, {.multiprocessors = 10}), 80u);
}

}  // namespace
}  // namespace moetier::kernels::cuda
