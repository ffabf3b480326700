#include "kernels/cuda/cuda_ref_layer.hpp"

#include <fmt/core.h>

namespace moetier::kernels::cuda {
namespace {

constexpr std::size_t k_workspace_alignment = 256;

ref_matrix matrix_of(const canonical_page::part& part, const weight_format& format,
                     std::uint32_t out, std::uint32_t in) noexcept {
  if (part.bytes == 0) return {};
  const matrix_form form = matrix_form_of(format, out, in);
  const std::uint32_t columns = group_columns(format.quant);
  return {.codes = part.offset,
          .scales = part.offset + form.scales_offset,
          .second = part.offset + form.second_offset,
          .out = out,
          .in = in,
          .groups = columns == 0 ? 0 : static_cast<std::uint32_t>(ceil_div(in, columns))};
}

std::uint64_t bias_of(const canonical_page::part& part) noexcept {
  return part.bytes == 0 ? k_ref_absent : part.offset;
}

ref_page page_of(const expert_shape& shape, const canonical_page::parts& parts) noexcept {
  const std::uint32_t hidden = shape.hidden_size;
  const std::uint32_t units = shape.intermediate_size;
  return {.format = shape.format,
          .activation = shape.activation,
          .gate = matrix_of(parts.gate, shape.format, units, hidden),
          .up = matrix_of(parts.up, shape.format, units, hidden),
          .down = matrix_of(parts.down, shape.format, hidden, units),
          .gate_bias = bias_of(parts.gate_bias),
          .up_bias = bias_of(parts.up_bias),
          .down_bias = bias_of(parts.down_bias),
          .constants = parts.constants.offset};
}

std::size_t mid_bytes(std::uint64_t entries, const expert_shape& shape) noexcept {
  return round_up(entries * shape.intermediate_size * sizeof(float), k_workspace_alignment);
}

}  // namespace

cuda_ref_layer::cuda_ref_layer(const expert_shape& shape, const device_size& device)
    : shape_(shape),
      device_(device),
      page_(shape),
      where_(page_of(shape, page_.where())),
      identity_(fmt::format("moetier.cuda.ref.{}", quant_name(shape.format.quant))),
      layout_id_(layout_name("canonical", dtype_name(shape.format.stored), shape)) {}

std::size_t cuda_ref_layer::workspace_bytes(const layer_capacity& capacity) const noexcept {
  const std::uint64_t entries = std::uint64_t{capacity.rows_cap} * capacity.k_in;
  return mid_bytes(entries, shape_) + entries * shape_.hidden_size * sizeof(float);
}

launch_status cuda_ref_layer::init_workspace(std::span<std::byte> /*workspace*/,
                                             void* /*stream*/) const {
  return {};  // nothing is read that the same call did not write
}

bool cuda_ref_layer::fits(const layer_call& call) const noexcept {
  return call.rows != nullptr && call.rows_live != nullptr && call.slot_ids != nullptr &&
         call.pages != nullptr && call.out != nullptr && call.status != nullptr && call.k_in >= 1 &&
         (call.weights != nullptr || call.mode == return_mode::exact) &&
         call.workspace.size() >=
             workspace_bytes({.rows_cap = call.rows_cap, .k_in = call.k_in, .slots = call.slots});
}

ref_expert_args cuda_ref_layer::args_of(const layer_call& call) const noexcept {
  const std::uint64_t entries = std::uint64_t{call.rows_cap} * call.k_in;
  std::byte* const y = call.workspace.data() + mid_bytes(entries, shape_);
  return {.page = where_,
          .pages = call.pages,
          .slots = call.slots,
          .slot_ids = call.slot_ids,
          .rows_live = call.rows_live,
          .rows_cap = call.rows_cap,
          .k_in = call.k_in,
          .rows = call.rows,
          .row_pitch_bytes = call.row_pitch_bytes,
          .row_as = call.row_as,
          .mid = reinterpret_cast<float*>(call.workspace.data()),
          .y = call.mode == return_mode::exact ? nullptr : reinterpret_cast<float*>(y),
          .weights = call.weights,
          .out = call.out,
          .out_pitch_bytes = call.out_pitch_bytes,
          .out_as = call.out_as,
          .status = call.status};
}

launch_status cuda_ref_layer::group(const layer_call& call, void* stream) const {
  if (call.rows_cap == 0) return {};
  if (!fits(call)) return {.error = launch_status::k_refused};
  return ref_check_slots(args_of(call), stream);
}

launch_status cuda_ref_layer::compute(const layer_call& call, void* stream) const {
  if (call.rows_cap == 0) return {};
  if (!fits(call)) return {.error = launch_status::k_refused};
  const ref_expert_args args = args_of(call);
  if (const auto done = ref_fc1(args, device_, stream); !done.ok()) return done;
  if (const auto done = ref_fc2(args, device_, stream); !done.ok()) return done;
  return args.y == nullptr ? launch_status{} : ref_combine(args, device_, stream);
}

}  // namespace moetier::kernels::cuda
