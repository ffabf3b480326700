#include "actors/cli/resolve_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "actors/cli/table.hpp"

namespace moetier::cli {
namespace {

using resolution::resolution_report;

// Workers only where not all of them said it.
std::string some_of(const std::vector<std::string>& workers, const resolution_report& r) {
  if (workers.size() == r.env_fingerprints.size()) return {};
  return fmt::format("{}", fmt::join(workers, ", "));
}

void add_others(table& t, const resolution_report& r,
                const std::vector<resolution::rejection>& rejected,
                const std::vector<resolution::possibility>& possible) {
  for (const auto& x : possible)
    t.add({x.candidate, "possible", fmt::format("unknown: {}", fmt::join(x.unknown, ", ")),
           some_of(x.workers, r)});
  for (const auto& x : rejected)
    t.add({x.candidate, std::string(reject_name(x.why)), x.detail, some_of(x.workers, r)});
}

}  // namespace

std::string resolve_text(const resolution_report& r, const std::string& model) {
  const auto& p = r.what;
  std::string text = fmt::format(
      "{}: {} experts, {} a token, H {}, I {}, {} weights, {} routing\n{} workers, {} slots per "
      "layer{}, {} MoE layers, {} tokens a call\n",
      model, p.num_experts, p.top_k, p.hidden_size, p.intermediate_size,
      p.quant == quant_kind::none ? dtype_name(p.stored) : quant_name(p.quant),
      routing_method_name(p.routing), r.where.workers, r.where.num_slots,
      r.where.eplb ? " with replicas" : "", r.where.moe_layers, r.where.tokens_max);
  if (!r.routing.fallback_reason.empty())
    text += fmt::format("routing {}: {}\n", r.routing.kernel,
                        r.routing.limit.empty()
                            ? r.routing.fallback_reason
                            : fmt::format("{} {} is above the faster kernel's limit",
                                          r.routing.limit, r.routing.value));
  for (const std::string& note : r.notes) text += fmt::format("{}\n", note);
  text += fmt::format("\n{}\n\n", describe(r));

  table backends({"backend", "answer", "why", "workers"});
  for (const std::string& name : r.eligible)
    backends.add({name, name == r.winner ? (r.degraded() ? "runs (degraded)" : "runs") : "eligible",
                  "", ""});
  add_others(backends, r, r.rejected, r.possible);
  text += backends.text();

  const auto& c = r.communication;
  table carriers({"carrier", "answer", "why", "workers"});
  // Without a backend nothing runs, whatever could carry its rows.
  if (!c.winner.empty()) carriers.add({c.winner, r.winner.empty() ? "eligible" : "runs", "", ""});
  if (!c.fallback.empty()) carriers.add({c.fallback, "fallback", "", ""});
  add_others(carriers, r, c.rejected, c.possible);
  return fmt::format("{}\n{}", text, carriers.text());
}

}  // namespace moetier::cli
