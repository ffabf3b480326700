#include "kernels/cuda/sm90_layer.hpp"

#include <cuda_runtime_api.h>

#include <string>

#include "kernels/cuda/row_tiles_launch.hpp"
#include "kernels/cuda/sm90_bf16_gather_rows.hpp"
#include "kernels/cuda/sm90_bf16_ladder.hpp"
#include "kernels/cuda/sm90_bf16_straight.hpp"
#include "kernels/cuda/sm90_f32_combine.hpp"
#include "kernels/cuda/sm90_fp8_ladder.hpp"
#include "kernels/cuda/sm90_fp8_quantise_rows.hpp"
#include "kernels/cuda/sm90_fp8_straight.hpp"
#include "kernels/cuda/sm90_i32_row_tiles.hpp"
#include "kernels/cuda/sm90_page.hpp"
#include "kernels/cuda/sm90_variant.hpp"
#include "kernels/cuda/sm90_workspace.hpp"

namespace moetier::kernels::cuda {
namespace {

// Of one block's wait for another: far above the longest call, far below a worker's own deadline.
constexpr std::uint64_t k_wait_deadline_ns = 2'000'000'000;

constexpr launch_status refused() { return {launch_status::k_refused}; }

class sm90_layer final : public ExpertLayer {
 public:
  sm90_layer(const expert_shape& shape, const device_size& device)
      : shape_(shape),
        page_(shape),
        gemm_(gemm_shape_of(shape)),
        device_(device),
        identity_(gemm_.format == gemm_format::fp8 ? "moetier.cuda.sm90_fp8.fp8_block"
                                                   : "moetier.cuda.sm90_bf16.none") {}

  std::string_view identity() const noexcept override { return identity_; }
  std::string_view layout_id() const noexcept override { return page_.layout_id(); }
  const expert_shape& shape() const noexcept override { return shape_; }
  bool row_invariant() const noexcept override { return true; }
  std::size_t page_bytes() const noexcept override { return page_.bytes(); }
  void pack_page(const expert_tensors& tensors, std::span<std::byte> page) const override {
    page_.pack(tensors, page);
  }

  std::size_t workspace_bytes(const layer_capacity& capacity) const noexcept override {
    const auto plan = plan_workspace(gemm_, capacity, device_);
    return plan ? plan->bytes : 0;
  }

  launch_status init_workspace(std::span<std::byte> workspace, void* stream) const override {
    const std::size_t bytes = counters_bytes_of(gemm_, device_);
    if (workspace.size() < bytes) return refused();
    return {cudaMemsetAsync(workspace.data(), 0, bytes, static_cast<cudaStream_t>(stream))};
  }

  std::string launch_text(const layer_call& call) const override {
    const gemm_choice chosen = choice_for(call);
    if (chosen.variant == gemm_variant::straight) {
      const auto launch = plan_straight(gemm_, tiles_of(call, chosen), device_);
      return launch ? to_string(*launch) : std::string();
    }
    const auto launch = plan_ladder(gemm_, chosen.tile_rows, tiles_of(call, chosen), device_);
    return launch ? to_string(*launch) : std::string();
  }

  launch_status group(const layer_call& call, void* stream) const override {
    if (call.rows_cap == 0) return {};
    const auto plan = plan_of(call);
    if (!plan) return refused();
    return make_row_tiles({.slot_ids = call.slot_ids,
                           .rows_live = call.rows_live,
                           .rows_cap = call.rows_cap,
                           .k_in = call.k_in,
                           .pages = call.pages,
                           .slots = call.slots,
                           .tile_rows = choice_for(call).tile_rows,
                           .tiles = tiles_in(call, *plan),
                           .scratch = call.workspace.data() + plan->scratch,
                           .scratch_bytes = plan->scratch_bytes,
                           .status = call.status},
                          stream);
  }

  launch_status compute(const layer_call& call, void* stream) const override {
    if (call.rows_cap == 0) return {};
    const auto plan = plan_of(call);
    if (!plan) return refused();
    launch_status done = gather(call, *plan, stream);
    if (done.ok()) done = multiply(call, *plan, stream);
    if (done.ok() && !writes_directly(call)) done = combine(call, *plan, stream);
    return done;
  }

 private:
  static gemm_choice choice_for(const layer_call& call) noexcept {
    return choose_gemm(call.mode, std::uint64_t{call.rows_cap} * call.k_in, call.slots,
                       call.rows_per_slot);
  }
  static std::uint32_t tiles_of(const layer_call& call, const gemm_choice& chosen) noexcept {
    return tiles_max(std::uint64_t{call.rows_cap} * call.k_in, call.slots, chosen.tile_rows);
  }
  // Whether FC2's rows are the answer.
  static bool writes_directly(const layer_call& call) noexcept {
    return call.mode == return_mode::exact || call.k_in == 1;
  }

  std::optional<sm90_workspace> plan_of(const layer_call& call) const noexcept {
    auto plan = plan_workspace(gemm_, {call.rows_cap, call.k_in, call.slots}, device_);
    if (!plan || call.workspace.size() < plan->bytes) return std::nullopt;
    return plan;
  }

  static tile_table tiles_in(const layer_call& call, const sm90_workspace& plan) noexcept {
    std::byte* const base = call.workspace.data();
    return {.header = reinterpret_cast<tile_header*>(base + plan.header),
            .tiles = reinterpret_cast<row_tile*>(base + plan.tiles),
            .segment_tile = reinterpret_cast<std::int32_t*>(base + plan.segment_tile),
            .tile_segment = reinterpret_cast<std::int32_t*>(base + plan.tile_segment),
            .entry_of = reinterpret_cast<std::int32_t*>(base + plan.entry_of),
            .place_of =
                call.k_in > 1 ? reinterpret_cast<std::int32_t*>(base + plan.place_of) : nullptr};
  }

  launch_status gather(const layer_call& call, const sm90_workspace& plan, void* stream) const {
    const bool zeros = call.mode == return_mode::partial && call.k_in == 1;
    const gather_rows_args args{.rows = call.rows,
                                .row_pitch_bytes = call.row_pitch_bytes,
                                .row_as = call.row_as,
                                .rows_cap = call.rows_cap,
                                .k_in = call.k_in,
                                .hidden_size = gemm_.hidden_size,
                                .slots = call.slots,
                                .tile_rows = choice_for(call).tile_rows,
                                .tiles = tiles_in(call, plan),
                                .x = call.workspace.data() + plan.x,
                                .rows_live = call.rows_live,
                                .slot_ids = zeros ? call.slot_ids : nullptr,
                                .out = call.out,
                                .out_pitch_bytes = call.out_pitch_bytes,
                                .out_as = call.out_as};
    return gemm_.format == gemm_format::fp8 ? quantise_rows(args, device_, stream)
                                            : gather_rows(args, device_, stream);
  }

  launch_status multiply(const layer_call& call, const sm90_workspace& plan, void* stream) const {
    std::byte* const base = call.workspace.data();
    const bool direct = writes_directly(call);
    const bool weigh = direct && call.mode == return_mode::partial;
    const gemm_choice chosen = choice_for(call);
    const bool straight = chosen.variant == gemm_variant::straight;
    const expert_gemm_args args{
        .shape = gemm_,
        .layout = page_.layout(),
        .activation = shape_.activation == activation_kind::swiglu_bias
                          ? gemm_activation::swiglu_bias
                          : gemm_activation::swiglu,
        .pages = call.pages,
        .tiles = tiles_in(call, plan),
        .x = base + plan.x,
        .mid = base + plan.mid,
        .out = direct ? call.out : base + plan.y,
        .out_pitch_bytes = direct ? call.out_pitch_bytes : y_pitch(call),
        .out_as = call.out_as,
        .weights = weigh ? call.weights : nullptr,
        .counters = reinterpret_cast<std::uint32_t*>(base),
        .partials = straight ? nullptr : reinterpret_cast<float*>(base + plan.partials),
        .status = call.status,
        .deadline_ns = k_wait_deadline_ns};
    const bool fp8 = gemm_.format == gemm_format::fp8;
    if (straight) {
      const auto launch = plan_straight(gemm_, tiles_of(call, chosen), device_);
      if (!launch) return refused();
      return fp8 ? launch_fp8_straight(args, *launch, true, stream)
                 : launch_bf16_straight(args, *launch, true, stream);
    }
    const auto launch = plan_ladder(gemm_, chosen.tile_rows, tiles_of(call, chosen), device_);
    if (!launch) return refused();
    return fp8 ? launch_fp8_ladder(args, *launch, true, stream)
               : launch_bf16_ladder(args, *launch, true, stream);
  }

  launch_status combine(const layer_call& call, const sm90_workspace& plan, void* stream) const {
    return combine_rows({.slot_ids = call.slot_ids,
                         .weights = call.weights,
                         .rows_live = call.rows_live,
                         .rows_cap = call.rows_cap,
                         .k_in = call.k_in,
                         .hidden_size = gemm_.hidden_size,
                         .y = call.workspace.data() + plan.y,
                         .y_pitch_bytes = y_pitch(call),
                         .y_as = call.out_as,
                         .out = call.out,
                         .out_pitch_bytes = call.out_pitch_bytes,
                         .out_as = call.out_as},
                        device_, stream);
  }
  std::size_t y_pitch(const layer_call& call) const noexcept {
    return std::size_t{gemm_.hidden_size} * (call.out_as == out_type::f32 ? 4 : 2);
  }

  const expert_shape shape_;
  const sm90_page page_;
  const gemm_shape gemm_;
  const device_size device_;
  const std::string identity_;
};

}  // namespace

std::unique_ptr<ExpertLayer> make_sm90_layer(const expert_shape& shape, const device_size& device) {
  if (!plan_workspace(gemm_shape_of(shape), {.rows_cap = 1, .k_in = 1, .slots = 1}, device))
    return nullptr;
  return std::make_unique<sm90_layer>(shape, device);
}

}  // namespace moetier::kernels::cuda
