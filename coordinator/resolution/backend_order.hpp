#pragma once
// From the name that an operator gave to the candidates it stands for: first those that were asked
// for, then those that are taken instead, as degraded. AUTO asks for the fast candidates of the
// workers' devices; a family asks for its members and falls back to the devices' own family; one
// candidate's name stands for itself alone, in every form that reports print: "cpu_avx2",
// "cpu.avx2", "moetier.cpu.avx2.none". The reference family has no fallback. Thread: any
// (pure).

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/resolution/request.hpp"
#include "schemas/base/error.hpp"

namespace moetier::coordinator {

struct backend_order {
  std::string literal;  // upper case
  std::vector<const kernels::backend_candidate*> asked;
  std::vector<const kernels::backend_candidate*> instead;

  bool contains(const kernels::backend_candidate* candidate) const noexcept;
};

// reason::config_invalid lists the names that are allowed.
expected<backend_order> backend_order_of(const resolution_request& request);

}  // namespace moetier::coordinator
