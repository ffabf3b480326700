#include <algorithm>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "schemas/resolution/inquiry.hpp"
#include "transport/candidates/carrier_candidate.hpp"

namespace moetier::transport {
namespace {

using resolution::deployment;
using resolution::environment;
using resolution::problem;
using resolution::reject_reason;
using resolution::verdict;

class questions final : resolution::inquiry {
 public:
  questions(const carrier_candidate& c, const problem& p, const deployment& d, const environment& e,
            const carrier_wants& wants)
      : inquiry(e), c_(c), p_(p), d_(d), wants_(wants) {}

  verdict ask() {
    return ask_all(*this, {&questions::place, &questions::device, &questions::slots,
                           &questions::limits, &questions::capabilities, &questions::built});
  }

 private:
  void place() {
    if (c_.one_process && !d_.one_process)
      refuse(reject_reason::topology_unsupported, "members are separate processes");
    if (c_.one_host && !resolution::same_place(d_, 2))
      refuse(reject_reason::topology_unsupported, "workers are on more than one host");
  }

  void device() {
    if (c_.needs_cuda) needs_cuda();
  }

  void slots() {
    if (!c_.bits.non_uniform_slots && !resolution::slots_uniform(d_))
      refuse(reject_reason::slots_not_divisible, "{}",
             resolution::uneven_remedy(p_.num_experts, d_.workers, d_.num_slots));
  }

  void limits() {
    const std::uint32_t members =
        d_.colocated ? std::max(d_.workers, d_.sources) : d_.workers + d_.sources;
    if (c_.limits.members != 0 && members > c_.limits.members)
      refuse(reject_reason::topology_unsupported, "{} members; at most {}", members,
             c_.limits.members);
    if (c_.limits.top_k != 0 && p_.top_k > c_.limits.top_k)
      refuse(reject_reason::workload_infeasible, "{} experts a token; at most {}", p_.top_k,
             c_.limits.top_k);
    if (c_.limits.tokens != 0 && d_.tokens_max > c_.limits.tokens)
      refuse(reject_reason::workload_infeasible,
             "{} tokens of a source; at most {} (session.max_tokens, --tokens)", d_.tokens_max,
             c_.limits.tokens);
    const auto stride = static_cast<std::uint32_t>(p_.hidden_size * dtype_bytes(p_.dtype_act));
    if (stride % c_.limits.stride_bytes != 0)
      refuse(reject_reason::shape_unaligned, "a row of {} bytes is no multiple of {}", stride,
             c_.limits.stride_bytes);
  }

  void capabilities() {
    if (wants_.all_gather_only && !c_.bits.all_gather)
      refuse(reject_reason::capability_missing, "{} wants every row on every worker",
             wants_.backend);
    if (d_.custom_finalise && !c_.bits.finalise_before_combine)
      refuse(reject_reason::capability_missing, "it combines before a function could finalise");
    if (p_.return_mode == resolution::answer_mode::exact && !c_.bits.exact_rows)
      refuse(reject_reason::exact_unsupported, "it returns weighted sums only");
  }

  void built() {
    const std::vector<std::string>* const here = needed("carriers", e_.carriers);
    if (here != nullptr && std::find(here->begin(), here->end(), c_.name) == here->end())
      refuse(reject_reason::dep_missing, "the worker's build or machine has no {}", c_.name);
  }

  const carrier_candidate& c_;
  const problem& p_;
  const deployment& d_;
  const carrier_wants& wants_;
};

}  // namespace

verdict can_implement(const carrier_candidate& candidate, const problem& p, const deployment& d,
                      const environment& e, const carrier_wants& wants) {
  return questions(candidate, p, d, e, wants).ask();
}

}  // namespace moetier::transport
