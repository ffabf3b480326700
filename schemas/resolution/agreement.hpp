#pragma once
// Whether the workers of a tier may serve together: the fields of their environments that must be
// equal, and a comparison that names each one that is not, with every worker's value. Build id and
// the set of kernels may differ, so that a tier can be upgraded worker by worker; only exact
// answers need equal kernel sets. Thread: any (pure).

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schemas/resolution/environment.hpp"

namespace moetier::resolution {

struct named_environment {
  std::string worker;
  environment seen;

  bool operator==(const named_environment&) const = default;
};

struct disagreement {
  std::string field;
  std::vector<std::pair<std::string, std::string>> values;  // worker, its value as text

  bool operator==(const disagreement&) const = default;
};

// Names of the fields that must match; the last one only for exact answers. Layouts must match for
// every kernel that two workers both have.
std::span<const std::string_view> must_match(answer_mode mode) noexcept;

// Empty = they agree. In the order of must_match(), then layouts. An unknown value equals only
// another unknown one.
std::vector<disagreement> compare(std::span<const named_environment> workers, answer_mode mode);

// "numerics_combine is 1 on worker@1, 2 on worker@2; ..."
std::string sentence_of(std::span<const disagreement> all);

}  // namespace moetier::resolution
