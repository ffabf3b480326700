#include "workers/weights/matrix_reader.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "schemas/base/assert.hpp"
#include "schemas/file/printable.hpp"
#include "workers/weights/canonical_check.hpp"
#include "workers/weights/matrix_slice.hpp"
#include "workers/weights/tensor_floats.hpp"

namespace moetier::workers {
namespace {

// One matrix to read: where its codes lie and how much of it the files have.
struct matrix_order {
  const matrix_tensors* from = nullptr;
  matrix_slice codes;  // in elements of the matrix
  matrix_extent live;  // less than full in the last piece of the shared experts
  matrix_extent full;  // [out, in]
  std::string place;
};

std::uint64_t divided_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

// The same slice in groups of `rows` x `columns`. Requires: it begins on a group.
matrix_slice in_groups(matrix_slice slice, std::uint64_t rows, std::uint64_t columns) {
  MOETIER_ASSERT(slice.first_row % rows == 0 && slice.first_column % columns == 0);
  MOETIER_ASSERT(!slice.in_major && (slice.step == 1 || rows == 1));
  slice.first_row /= rows;
  slice.first_column /= columns;
  slice.columns = divided_up(slice.columns, columns);
  return slice;
}

matrix_extent in_groups(const matrix_extent& extent, std::uint64_t rows, std::uint64_t columns) {
  return {divided_up(extent.out, rows), divided_up(extent.in, columns)};
}

unexpected_error mismatch(const matrix_order& order, const tensor_place& at, std::string_view found,
                          std::string_view wanted) {
  return fail(reason::weight_mismatch,
              fmt::format("{} {}", order.place, printable(at.tensor->name)), found, wanted);
}

// Scales of blocks that start anew with every expert.
matrix_slice block_slice(const matrix_order& order) {
  matrix_slice slice = in_groups(order.codes, 1, 128);
  MOETIER_ASSERT(order.codes.first_row % order.full.out == 0);
  slice.first_row = order.codes.first_row / order.full.out * divided_up(order.full.out, 128);
  return slice;
}

expected<void> read_f32_blocks(const matrix_order& order, std::span<std::byte> scales) {
  const matrix_extent live = in_groups(order.live, 128, 128);
  const matrix_extent full = in_groups(order.full, 128, 128);
  const matrix_slice slice = block_slice(order);
  for (std::uint64_t row = 0; row < live.out; ++row) {
    std::vector<float> values(live.in);
    if (auto done =
            read_floats(order.from->scales, order.place,
                        (slice.first_row + row) * slice.columns + slice.first_column, 1, values);
        !done)
      return done;
    std::memcpy(scales.data() + row * full.in * sizeof(float), values.data(),
                values.size() * sizeof(float));
  }
  return {};
}

// One scale for all, or one a row.
expected<void> read_row_scales(const matrix_order& order, std::span<std::byte> scales) {
  const tensor_info& tensor = *order.from->scales.tensor;
  const bool one = tensor.bytes() * 8 == tensor.type->bits;
  std::vector<float> values(one ? 1 : order.live.out);
  if (auto done =
          read_floats(order.from->scales, order.place, one ? 0 : order.codes.first_row, 1, values);
      !done)
    return done;
  values.resize(order.live.out, values.front());
  std::memcpy(scales.data(), values.data(), values.size() * sizeof(float));
  return {};
}

void fill_with_ones(quant_kind quant, std::span<std::byte> scales) {
  if (quant == quant_kind::mxfp8 || quant == quant_kind::mxfp4) {
    std::ranges::fill(scales, std::byte{127});
  } else if (quant == quant_kind::nvfp4) {
    std::ranges::fill(scales, std::byte{0x38});
  } else if (quant == quant_kind::int4_g128) {
    constexpr std::uint16_t k_one = 0x3f80;
    for (std::size_t i = 0; i < scales.size(); i += sizeof(k_one))
      std::memcpy(scales.data() + i, &k_one, sizeof(k_one));
  } else {
    constexpr float k_one = 1.0F;
    for (std::size_t i = 0; i < scales.size(); i += sizeof(k_one))
      std::memcpy(scales.data() + i, &k_one, sizeof(k_one));
  }
}

expected<void> read_scales(quant_kind quant, const matrix_order& order,
                           std::span<std::byte> scales) {
  switch (quant) {
    case quant_kind::none: return {};
    case quant_kind::fp8_tensor: return read_row_scales(order, scales);
    case quant_kind::fp8_block: return read_f32_blocks(order, scales);
    default: break;
  }
  const std::uint64_t group = group_columns(quant);
  const std::size_t bytes = quant == quant_kind::int4_g128 ? 2 : 1;
  return copy_slice(order.from->scales, in_groups(order.codes, 1, group), bytes,
                    in_groups(order.live, 1, group), in_groups(order.full, 1, group), scales);
}

// What stands beside the codes and does not reach the canonical bytes, but must be sound.
expected<void> check_beside(const matrix_order& order) {
  if (const tensor_place& at = order.from->input_scale; at.tensor != nullptr) {
    if (auto scale = read_floats(at, order.place); !scale)
      return unexpected_error(std::move(scale.error()));
  }
  if (const tensor_place& at = order.from->stored_shape; at.tensor != nullptr) {
    std::array<std::uint64_t, 2> shape{};
    if (auto done = at.file->read(*at.tensor, std::as_writable_bytes(std::span(shape))); !done)
      return done;
    const std::uint64_t columns = order.codes.columns;
    const std::uint64_t rows = order.from->codes.tensor->shape().front();
    if (shape != std::array{rows, columns})
      return mismatch(order, at, fmt::format("{} x {}", shape[0], shape[1]),
                      fmt::format("{} x {}", rows, columns));
  }
  return {};
}

expected<void> read_matrix(const weight_format& format, const matrix_order& order,
                           std::span<std::byte> into) {
  const auto out = static_cast<std::uint32_t>(order.full.out);
  const auto in = static_cast<std::uint32_t>(order.full.in);
  const matrix_form form = matrix_form_of(format, out, in);
  MOETIER_ASSERT(into.size() == form.bytes);
  const auto codes = into.first(form.codes_bytes);
  const auto scales = into.subspan(form.scales_offset, form.scales_bytes);
  // Padding and what the files lack: zeros under scales of 1.
  const bool whole = order.live == order.full;
  if (!whole)
    std::ranges::fill(codes,
                      format.quant == quant_kind::int4_g128 ? std::byte{0x88} : std::byte{0});
  std::ranges::fill(into.subspan(form.codes_bytes), std::byte{0});
  if (!whole) fill_with_ones(format.quant, scales);

  const std::uint64_t per_byte = is_four_bit(format.quant) ? 2 : 1;
  const std::size_t element =
      format.quant == quant_kind::none ? dtype_bytes(format.stored) : std::size_t{1};
  const matrix_slice slice = per_byte == 1 ? order.codes : in_groups(order.codes, 1, per_byte);
  if (auto done =
          copy_slice(order.from->codes, slice, element, {order.live.out, order.live.in / per_byte},
                     {order.full.out, order.full.in / per_byte}, codes);
      !done)
    return done;
  if (format.quant == quant_kind::none) return {};
  if (auto done = read_scales(format.quant, order, scales); !done) return done;
  if (format.quant == quant_kind::nvfp4) {
    float second = 0;
    if (auto done = read_floats(order.from->second, order.place, 0, 1, std::span(&second, 1));
        !done)
      return done;
    std::memcpy(into.data() + form.second_offset, &second, sizeof(second));
  }
  if (auto done = check_beside(order); !done) return done;
  if (const std::string fault = find_fault(format, into, out, in); !fault.empty())
    return mismatch(order, order.from->codes, fault, "codes and scales that are numbers");
  return {};
}

// Where expert `e`'s projection lies in the tensors that hold all experts.
matrix_slice packed_slice(const model_description& model, packing as, std::uint64_t e,
                          projection part) {
  const std::uint64_t h = model.hidden_size;
  const std::uint64_t i = model.intermediate_size;
  const bool down = part == projection::down;
  const std::uint64_t second = part == projection::up ? 1 : 0;
  switch (as) {
    case packing::none: break;
    case packing::rows:
      return down ? matrix_slice{.first_row = e * h, .columns = i}
                  : matrix_slice{.first_row = e * 2 * i + second * i, .columns = h};
    case packing::columns:
      return down ? matrix_slice{.first_row = e * i, .columns = h, .in_major = true}
                  : matrix_slice{.first_row = e * h,
                                 .first_column = second * i,
                                 .columns = 2 * i,
                                 .in_major = true};
    case packing::columns_interleaved:
      if (model.format.quant != quant_kind::none)
        return down ? matrix_slice{.first_row = e * h, .columns = i}
                    : matrix_slice{.first_row = e * 2 * i + second, .columns = h, .step = 2};
      return down ? matrix_slice{.first_row = e * i, .columns = h, .in_major = true}
                  : matrix_slice{.first_row = e * h,
                                 .first_column = second,
                                 .columns = 2 * i,
                                 .step = 2,
                                 .in_major = true};
    case packing::stacked:
      return down ? matrix_slice{.first_row = e * h, .columns = i}
                  : matrix_slice{.first_row = e * i, .columns = h};
    case packing::flat: return matrix_slice{.first_row = e * i, .columns = h, .in_major = down};
  }
  return {};
}

expected<void> read_biases(const model_description& model, const tensor_naming& naming,
                           const layer_tensors& tensors, std::uint32_t expert,
                           const std::string& place, const expert_buffers& into) {
  const std::uint64_t i = model.intermediate_size;
  const bool alternate = naming.names->packed_as == packing::columns_interleaved;
  const std::uint64_t step = alternate ? 2 : 1;
  const std::uint64_t first = expert * 2 * i;
  const auto& [gate_up, unused, down] = tensors.biases;
  if (auto done = read_floats(gate_up, place, first, step, into.gate_bias); !done) return done;
  if (auto done = read_floats(gate_up, place, first + (alternate ? 1 : i), step, into.up_bias);
      !done)
    return done;
  return read_floats(down, place, std::uint64_t{expert} * model.hidden_size, 1, into.down_bias);
}

}  // namespace

expected<void> read_expert(const model_description& model, const tensor_naming& naming,
                           const layer_tensors& tensors, layer_id layer, std::uint32_t expert,
                           const expert_buffers& into) {
  const std::uint64_t h = model.hidden_size;
  const std::uint64_t i = model.intermediate_size;
  const bool shared = expert >= model.experts;
  const std::uint64_t piece = shared ? expert - model.experts : 0;
  const std::uint64_t size = model.shared.intermediate_size;
  const std::uint64_t live = shared ? std::min(i, size - piece * i) : i;
  const std::string place = fmt::format("layer {} expert {}", layer.value, expert);
  const std::array buffers{into.gate, into.up, into.down};
  for (const projection part : {projection::gate, projection::up, projection::down}) {
    const auto p = static_cast<std::size_t>(part);
    if (part == projection::gate && !is_gated(model.activation.kind)) continue;
    const bool down = part == projection::down;
    matrix_order order;
    order.place = place;
    order.full = down ? matrix_extent{h, i} : matrix_extent{i, h};
    order.live = down ? matrix_extent{h, live} : matrix_extent{live, h};
    if (shared) {
      order.from = &tensors.shared[p];
      order.codes = down ? matrix_slice{.first_column = piece * i, .columns = size}
                         : matrix_slice{.first_row = piece * i, .columns = h};
    } else if (naming.packed) {
      // gate and up share a tensor where up has no name of its own.
      const bool together = part == projection::up && naming.names->packed[p].empty();
      order.from = &tensors.experts[together ? 0 : p];
      order.codes = packed_slice(model, naming.names->packed_as, expert, part);
    } else {
      order.from = &tensors.experts[std::size_t{expert} * k_projections + p];
      order.codes = {.columns = down ? i : h};
    }
    if (auto done = read_matrix(model.format, order, buffers[p]); !done) return done;
  }
  if (!model.expert_bias) return {};
  if (shared) {
    for (const auto& bias : {into.gate_bias, into.up_bias, into.down_bias})
      std::ranges::fill(bias, 0.0F);
    return {};
  }
  return read_biases(model, naming, tensors, expert, place, into);
}

}  // namespace moetier::workers
