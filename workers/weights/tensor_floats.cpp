#include "workers/weights/tensor_floats.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/core.h>

#include "schemas/base/assert.hpp"
#include "schemas/base/dtype.hpp"
#include "schemas/file/printable.hpp"

namespace moetier::workers {
namespace {

float value_of(const tensor_type& type, const std::byte* at) {
  if (type.element == dtype::f32) {
    float value = 0;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  if (type.bits == 8) {
    const auto exponent = static_cast<std::uint8_t>(*at);
    return exponent == 0xff ? std::numeric_limits<float>::quiet_NaN()
                            : std::ldexp(1.0F, exponent - 127);
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof(bits));
  return type.element == dtype::bf16 ? f32_from_bf16(bits) : f32_from_f16(bits);
}

unexpected_error not_finite(const tensor_place& from, std::string_view place, std::uint64_t at) {
  return fail(reason::weight_mismatch, fmt::format("{} {}", place, printable(from.tensor->name)),
              fmt::format("an element that is not finite at {}", at), "finite numbers");
}

}  // namespace

expected<void> read_floats(const tensor_place& from, std::string_view place, std::uint64_t first,
                           std::uint64_t step, std::span<float> into) {
  const tensor_type& type = *from.tensor->type;
  const std::size_t bytes = type.bits / 8;
  MOETIER_ASSERT(!into.empty());
  std::vector<std::byte> stored(((into.size() - 1) * step + 1) * bytes);
  if (auto done = from.file->read_part(*from.tensor, first * bytes, stored); !done) return done;
  for (std::size_t i = 0; i < into.size(); ++i) {
    into[i] = value_of(type, stored.data() + i * step * bytes);
    if (!std::isfinite(into[i])) return not_finite(from, place, first + i * step);
  }
  return {};
}

expected<std::vector<float>> read_floats(const tensor_place& from, std::string_view place) {
  std::vector<float> values(from.tensor->bytes() / (from.tensor->type->bits / 8));
  if (auto done = read_floats(from, place, 0, 1, values); !done)
    return unexpected_error(std::move(done.error()));
  return values;
}

expected<void> check_finite(const tensor_place& from, std::string_view place,
                            std::span<const std::byte> stored) {
  const tensor_type& type = *from.tensor->type;
  const std::size_t bytes = type.bits / 8;
  for (std::size_t i = 0; i < stored.size() / bytes; ++i) {
    if (!std::isfinite(value_of(type, stored.data() + i * bytes)))
      return not_finite(from, place, i);
  }
  return {};
}

}  // namespace moetier::workers
