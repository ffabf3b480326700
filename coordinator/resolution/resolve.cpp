#include "coordinator/resolution/resolve.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "coordinator/resolution/answers.hpp"
#include "coordinator/resolution/ask_backend.hpp"
#include "coordinator/resolution/backend_order.hpp"
#include "coordinator/resolution/carrier_order.hpp"
#include "coordinator/resolution/literal.hpp"
#include "eplb/partition.hpp"
#include "schemas/base/checksum.hpp"

namespace moetier::coordinator {
namespace {

using kernels::backend_candidate;
using resolution::reject_reason;
using resolution::resolution_report;
using resolution::selected_by;

expected<void> check_agreement(const resolution_request& r) {
  const std::uint64_t hash = hash_of(r.what);
  for (std::size_t w = 0; w < r.problem_hashes.size(); ++w) {
    if (r.problem_hashes[w] != hash)
      return fail(reason::agreement_failed,
                  fmt::format("problem is {:016x} on {}; the tier's is {:016x}",
                              r.problem_hashes[w], r.workers[w].worker, hash));
  }
  const auto differing = compare(r.workers, r.what.return_mode);
  if (!differing.empty()) return fail(reason::agreement_failed, sentence_of(differing));
  return {};
}

// Everything that is wrong before anything can be weighed.
expected<void> check(const resolution_request& r) {
  if (auto checked = check_problem(r.what); !checked) return checked;
  if (auto checked = check_deployment(r.where); !checked) return checked;
  if (r.workers.size() != r.where.workers)
    return fail(reason::invalid_argument, "environments", r.workers.size(),
                fmt::format("one for each of {} workers", r.where.workers));
  if (!r.problem_hashes.empty() && r.problem_hashes.size() != r.workers.size())
    return fail(reason::invalid_argument, "problem_hashes", r.problem_hashes.size(),
                fmt::format("none, or one for each of {} workers", r.workers.size()));
  if (auto known = check_carrier_name(r); !known) return known;
  if (auto agreed = check_agreement(r); !agreed) return agreed;
  // Whether uneven slots are taken is each candidate's own answer.
  const auto divided = eplb::check_partition(r.what.num_experts, r.where, true);
  if (!divided) return unexpected_error(divided.error());
  if (divided->rejected())
    return fail(reason::partition_invalid, r.what.num_experts, r.where.workers, divided->detail);
  return {};
}

struct weighed {
  answers said;
  resolution::carrier_choice carrier;
};

weighed weigh_one(const resolution_request& r, const backend_candidate& c) {
  resolution::carrier_choice carrier = choose_carrier(r, c);
  answers said = ask_backend(r, c, carrier);
  return {std::move(said), std::move(carrier)};
}

class weighing final {
 public:
  weighing(const resolution_request& request, const backend_order& order)
      : r_(request), order_(order) {
    report_.requested = order.literal;
    report_.epoch = request.epoch;
    report_.what = request.what;
    report_.where = request.where;
    report_.routing = request.routing;
    for (const auto& worker : request.workers)
      report_.env_fingerprints.emplace_back(worker.worker, fingerprint_of(worker.seen));
    if (request.where.eplb && request.where.workers == 1)
      report_.notes.emplace_back("replicas have no effect: there is one worker");
  }

  resolved run() {
    for (const backend_candidate* c : order_.asked) ask(*c, selected_by::pinned);
    for (const backend_candidate* c : order_.instead) ask(*c, selected_by::heuristic);
    for (const backend_candidate& c : r_.backends) {
      if (!order_.contains(&c)) tell_unasked(c);
    }
    finish();
    std::optional<error> why = refusal();
    return {std::move(report_), std::move(why)};
  }

 private:
  void ask(const backend_candidate& c, selected_by how) {
    weighed w = weigh_one(r_, c);
    w.said.tell(report_.rejected, report_.possible);
    if (!w.said.eligible()) {
      if (how == selected_by::pinned) trail_.push_back(w.said.candidate());
      // Without a winner the first candidate's carriers explain.
      if (explained_.winner.empty() && explained_.rejected.empty())
        explained_ = std::move(w.carrier);
      return;
    }
    report_.eligible.push_back(w.said.candidate());
    if (!report_.winner.empty()) return;
    report_.winner = w.said.candidate();
    report_.selected = how;
    report_.communication = std::move(w.carrier);
    if (c.family == kernels::backend_family::cuda) report_.combine_dtype = r_.what.dtype_act;
  }

  // One that stands in no order: what it would have said, or that nobody asked.
  void tell_unasked(const backend_candidate& c) {
    weighed w = weigh_one(r_, c);
    if (w.said.eligible())
      w.said.add_everywhere(
          r_, reject_reason::path_not_enabled,
          fmt::format("it runs when asked for only, as {}", upper_case(c.short_name)));
    w.said.tell(report_.rejected, report_.possible);
  }

  void finish() {
    if (report_.winner.empty()) {
      report_.communication = std::move(explained_);
      if (may_run()) report_.selected = selected_by::undecided;
      return;
    }
    if (report_.degraded()) report_.degraded_from = std::move(trail_);
    report_.resolution_id =
        resolution_id_of(report_.winner, report_.communication.winner, hash_of(r_.what));
  }

  std::optional<error> refusal() const {
    if (report_.degraded() && !r_.allow_degradation) {
      return make_error(reason::degrade_forbidden,
                        fmt::format("{} would run instead of {}: {}", report_.winner,
                                    report_.requested, asked_reasons()));
    }
    if (!report_.winner.empty()) return std::nullopt;
    const transport::carrier_candidate* const forced = asked_carrier(r_);
    if (forced != nullptr && runs_with_another_carrier()) {
      for (const resolution::rejection& c : report_.communication.rejected) {
        if (c.candidate == forced->name)
          return make_error(reason::carrier_unavailable, c.candidate,
                            fmt::format("{}: {}", reject_name(c.why), c.detail));
      }
    }
    if (report_.selected == selected_by::undecided) return std::nullopt;
    return make_error(reason::backend_unresolved, asked_reasons());
  }

  // Whether a candidate of the order is possible; offline that is no refusal.
  bool may_run() const {
    const auto possible = [&](const backend_candidate* c) {
      const std::string identity = identity_of(*c, r_.what.quant);
      return std::any_of(report_.possible.begin(), report_.possible.end(),
                         [&](const auto& p) { return p.candidate == identity; });
    };
    return std::any_of(order_.asked.begin(), order_.asked.end(), possible) ||
           std::any_of(order_.instead.begin(), order_.instead.end(), possible);
  }

  // Whether the carrier's name alone stands in the way of a backend that was asked for.
  bool runs_with_another_carrier() const {
    resolution_request without = r_;
    without.where.communication = k_auto;
    return std::any_of(order_.asked.begin(), order_.asked.end(), [&](const backend_candidate* c) {
      return weigh_one(without, *c).said.rejected().empty();
    });
  }

  // Every candidate that was asked for or would have done instead, with its reason.
  std::string asked_reasons() const {
    std::string text;
    const auto add = [&](const backend_candidate* c) {
      const std::string identity = identity_of(*c, r_.what.quant);
      for (const resolution::rejection& r : report_.rejected) {
        if (r.candidate == identity)
          text += fmt::format("{}{}: {}: {}", text.empty() ? "" : "; ", identity,
                              reject_name(r.why), r.detail);
      }
    };
    for (const backend_candidate* c : order_.asked) add(c);
    if (report_.winner.empty()) {
      for (const backend_candidate* c : order_.instead) add(c);
    }
    return text;
  }

  const resolution_request& r_;
  const backend_order& order_;
  resolution_report report_;
  resolution::carrier_choice explained_;
  std::vector<std::string> trail_;
};

}  // namespace

expected<resolved> weigh(const resolution_request& request) {
  const auto order = backend_order_of(request);
  if (!order) return unexpected_error(order.error());
  if (auto checked = check(request); !checked) return unexpected_error(checked.error());
  return weighing(request, *order).run();
}

expected<resolution_report> resolve(const resolution_request& request) {
  auto outcome = weigh(request);
  if (!outcome) return unexpected_error(std::move(outcome.error()));
  if (outcome->refusal) return unexpected_error(std::move(*outcome->refusal));
  return std::move(outcome->report);
}

expected<resolution_report> resolve_again(resolution_request& request, prepare_failure failed) {
  request.failures.push_back(std::move(failed));
  return resolve(request);
}

std::uint64_t resolution_id_of(std::string_view winner, std::string_view carrier,
                               std::uint64_t problem_hash) {
  const std::string text =
      fmt::format("moetier resolution 1\n{}\n{}\n{:016x}\n", winner, carrier, problem_hash);
  const std::uint64_t id =
      first_64_bits(sha256(std::as_bytes(std::span(text.data(), text.size()))));
  return id != 0 ? id : 1;
}

}  // namespace moetier::coordinator
