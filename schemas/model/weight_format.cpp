#include "schemas/model/weight_format.hpp"

#include <array>

namespace moetier {
namespace {

constexpr std::array<std::string_view, k_quant_kinds> k_names{
    "none", "fp8_tensor", "fp8_block", "mxfp8", "mxfp4", "nvfp4", "int4_g128"};

constexpr std::size_t aligned(std::size_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

constexpr std::size_t divided_up(std::size_t a, std::size_t b) noexcept { return (a + b - 1) / b; }

std::size_t scales_bytes_of(quant_kind quant, std::size_t out, std::size_t in) noexcept {
  switch (quant) {
    case quant_kind::none: return 0;
    case quant_kind::fp8_tensor: return out * sizeof(float);
    case quant_kind::fp8_block: return divided_up(out, 128) * divided_up(in, 128) * sizeof(float);
    case quant_kind::mxfp8:
    case quant_kind::mxfp4: return out * (in / 32);
    case quant_kind::nvfp4: return out * (in / 16);
    case quant_kind::int4_g128: return out * (in / 128) * 2;
  }
  return 0;
}

}  // namespace

std::string_view quant_name(quant_kind quant) noexcept {
  const auto at = static_cast<std::size_t>(quant);
  return at < k_names.size() ? k_names[at] : std::string_view();
}

bool quant_of(std::string_view name, quant_kind& quant) noexcept {
  for (std::size_t i = 0; i < k_names.size(); ++i) {
    if (k_names[i] != name) continue;
    quant = static_cast<quant_kind>(i);
    return true;
  }
  return false;
}

matrix_form matrix_form_of(const weight_format& format, std::uint32_t out,
                           std::uint32_t in) noexcept {
  const std::size_t values = std::size_t{out} * in;
  matrix_form form;
  if (format.quant == quant_kind::none) {
    form.codes_bytes = values * dtype_bytes(format.stored);
  } else {
    form.codes_bytes = is_four_bit(format.quant) ? values / 2 : values;
  }
  form.scales_bytes = scales_bytes_of(format.quant, out, in);
  form.scales_offset = form.scales_bytes == 0 ? form.codes_bytes : aligned(form.codes_bytes);
  form.bytes = form.scales_offset + form.scales_bytes;
  form.second_offset = form.bytes;
  if (format.quant == quant_kind::nvfp4) {
    form.second_offset = aligned(form.bytes);
    form.bytes = form.second_offset + sizeof(float);
  }
  return form;
}

}  // namespace moetier
