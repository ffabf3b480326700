#pragma once
// The rows of `bench kernels --part device`: worker shapes, formats, how many tokens, who is routed
// where, and what each should take. Floors are the least time in which an H200 can do it: bytes of
// the active weights and of the rows, once each, at 4.5 TB/s, or the products at the matrix rate,
// whichever is longer. The peers' script follows the same rules (tests/bench/peers/bench_rows.py).
//
// Thread: any (constants, pure functions).

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "actors/cli/device_routing.hpp"
#include "kernels/backend.hpp"

namespace moetier::cli {

// One worker's share of a model's layer.
struct device_shape {
  std::string_view name;
  std::uint32_t hidden_size = 0;
  std::uint32_t intermediate_size = 0;
  std::uint32_t slots = 0;
  std::uint32_t k = 0;  // entries of a row
  bool bias = false;    // and the activation swiglu_bias
};

// What is wanted of a row: a time, or a multiple of the read probe's; 0 = not asked.
struct device_target {
  double us = 0;
  double of_probe = 0;
};

struct device_row {
  const device_shape* shape = nullptr;
  quant_kind quant = quant_kind::none;  // none = bf16
  std::uint32_t tokens = 0;
  routing_kind routing = routing_kind::random;
  device_target target{};
};

std::span<const device_shape> device_shapes() noexcept;
std::span<const device_row> device_rows() noexcept;

std::string_view device_format_name(quant_kind quant) noexcept;  // "bf16", "fp8_block"
kernels::expert_shape expert_shape_of(const device_shape& shape, quant_kind quant) noexcept;

// One expert's weights and scales in bytes.
double expert_bytes(const device_shape& shape, quant_kind quant) noexcept;
// Slots that random routing is expected to need.
double expected_active(const device_shape& shape, std::uint32_t tokens) noexcept;
// us of an H200 for `active` slots (an average over routings).
double floor_us(const device_shape& shape, quant_kind quant, std::uint32_t tokens,
                double active) noexcept;
double layer_flops(const device_shape& shape, std::uint32_t tokens) noexcept;

// How a row is measured: routings that take turns, and layers of one graph. The layers' weights
// rotate, so that a weight has left the caches before it is read again.
std::uint32_t routings_of(std::uint32_t tokens) noexcept;
std::uint32_t layers_of_graph(const device_shape& shape, quant_kind quant,
                              std::uint32_t tokens) noexcept;

}  // namespace moetier::cli
