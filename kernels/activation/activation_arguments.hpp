#pragma once
// From an activation's constants, per expert, to what one kernel takes, before weights exist. A
// Backend declares for each constant whether it reads one value an expert, one value for all, or
// none; a value that a kernel would ignore is refused, never dropped. Thread: any.

#include <span>
#include <string_view>

#include "schemas/base/error.hpp"
#include "schemas/model/activation.hpp"

namespace moetier::kernels {

enum class constant_support : std::uint8_t {
  unsupported = 0,  // the kernel has no such constant: a value is refused
  scalar = 1,       // one value for all experts: they must be exactly equal
  per_expert = 2,   // one value an expert
};

struct activation_support {
  constant_support alpha = constant_support::unsupported;
  constant_support beta = constant_support::unsupported;
  constant_support limit = constant_support::unsupported;

  bool operator==(const activation_support&) const = default;
};

// Values of one constant: empty = absent, one = for every expert, else one an expert.
struct given_vectors {
  std::span<const float> alpha{};
  std::span<const float> beta{};
  std::span<const float> limit{};
};

// Writes the constants of every expert. reason::activation_invalid names `owner` (the Backend), the
// constant and the kind: a constant that the owner does not execute, unequal values for a scalar, a
// number of values that is neither 1 nor that of the experts, a value that check_activation()
// refuses. Requires: out is not empty (one element an expert).
expected<void> activation_arguments(std::string_view owner, activation_kind kind,
                                    const activation_support& declared, const given_vectors& given,
                                    std::span<activation_constants> out);

}  // namespace moetier::kernels
