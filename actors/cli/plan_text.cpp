#include "actors/cli/plan_text.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "actors/cli/table.hpp"

namespace moetier::cli {
namespace {

using eplb::layer_gain;
using nlohmann::ordered_json;

// Mean and worst over the layers that have load.
struct spread {
  double mean = 1, worst = 1;
};

// `idle` where no layer has load: every placement is as good.
template <class Value>
spread spread_of(const std::vector<layer_gain>& gains, Value value, double idle = 1) {
  spread s{idle, idle};
  double sum = 0;
  std::size_t count = 0;
  for (const layer_gain& g : gains) {
    if (!g.loaded) continue;
    const double v = value(g);
    s.worst = count == 0 ? v : std::min(s.worst, v);
    sum += v;
    ++count;
  }
  if (count > 0) s.mean = sum / static_cast<double>(count);
  return s;
}

std::uint64_t sum_of(const std::vector<layer_gain>& gains, std::uint32_t layer_gain::*what) {
  std::uint64_t sum = 0;
  for (const layer_gain& g : gains) sum += g.*what;
  return sum;
}

std::string shape_text(const eplb::plan_draft& d) {
  const auto slots =
      std::accumulate(d.slots_per_worker.begin(), d.slots_per_worker.end(), std::uint32_t{0});
  const auto [least, most] =
      std::minmax_element(d.slots_per_worker.begin(), d.slots_per_worker.end());
  return fmt::format(
      "{} layer(s) of {} experts over {} worker(s), {} slots per layer ({} each)", d.layers.size(),
      d.experts, d.slots_per_worker.size(), slots,
      *least == *most ? std::to_string(*least) : fmt::format("{} to {}", *least, *most));
}

std::size_t empty_slots(const eplb::plan_draft& d) {
  std::size_t count = 0;
  for (const eplb::draft_layer& l : d.layers)
    count += static_cast<std::size_t>(std::count(l.slots.begin(), l.slots.end(), -1));
  return count;
}

std::string gains_text(const plan_report& r) {
  const auto& gains = r.plan->gains;
  std::vector<std::string> heads{"layer", "without"};
  if (r.repaired) heads.emplace_back("before");
  heads.insert(heads.end(), {"plan", "bound", "% of optimal"});
  if (r.repaired) heads.insert(heads.end(), {"copies", "greedy's"});
  heads.emplace_back("how");
  table t(heads);
  for (const layer_gain& g : gains) {
    const auto ratio = [&](double v) { return g.loaded ? fmt::format("{:.4f}", v) : "-"; };
    std::vector<std::string> cells{std::to_string(g.layer.value), ratio(g.balancedness_without)};
    if (r.repaired) cells.push_back(ratio(g.balancedness_before));
    cells.push_back(ratio(g.balancedness));
    cells.push_back(g.loaded ? fmt::format("{:.1f}", g.bound) : "-");
    cells.push_back(g.loaded ? fmt::format("{:.2f}", g.percent_of_optimal) : "-");
    if (r.repaired) {
      cells.push_back(std::to_string(g.copies));
      cells.push_back(std::to_string(g.copies_reference));
    }
    cells.emplace_back(g.loaded ? eplb::layer_method_name(g.method) : "no load");
    t.add(cells);
  }
  return t.text();
}

std::string balance_text(const plan_report& r) {
  const auto& gains = r.plan->gains;
  if (std::none_of(gains.begin(), gains.end(), [](const layer_gain& g) { return g.loaded; }))
    return "no layer has load: any placement is as good\n";
  const auto line = [](const char* name, const spread& s) {
    return fmt::format("  {:<14}{:.4f}  worst layer {:.4f}\n", name, s.mean, s.worst);
  };
  std::string text =
      "balancedness (mean load of the workers / largest; 1 = nobody waits; without plan every "
      "expert\n"
      "lies once, in order; bound: the least load that the fullest worker can have):\n";
  text += line("without plan", spread_of(gains, [](auto& g) { return g.balancedness_without; }));
  if (r.repaired)
    text += line("plan before", spread_of(gains, [](auto& g) { return g.balancedness_before; }));
  text += line("with plan", spread_of(gains, [](auto& g) { return g.balancedness; }));
  const spread p = spread_of(gains, [](auto& g) { return g.percent_of_optimal; });
  const bool starved = std::any_of(gains.begin(), gains.end(), [](const layer_gain& g) {
    return g.loaded && g.starved_bound > g.bound * 1.00005;
  });
  text += fmt::format("  {:.2f} % of {}, worst layer {:.2f} %\n", p.mean,
                      starved ? "the bound" : "what any placement could reach", p.worst);
  if (starved) {
    const spread s = spread_of(gains, [](auto& g) { return g.percent_of_starved; });
    text += fmt::format("  {:.2f} % of what so few slots allow, worst layer {:.2f} %\n", s.mean,
                        s.worst);
  }
  return text;
}

std::string moves_text(const plan_report& r) {
  const auto& gains = r.plan->gains;
  const std::uint64_t copies = sum_of(gains, &layer_gain::copies);
  const std::uint64_t greedy = sum_of(gains, &layer_gain::copies_reference);
  std::string text = fmt::format("copies: {} (the reference greedy would make {})", copies, greedy);
  if (r.expert_bytes != 0 && copies > 0) {
    text += fmt::format("; {} bytes", copies * r.expert_bytes);
    for (std::size_t p = 1; p < eplb::k_copy_paths; ++p) {
      if (r.moves.bytes[p] == 0) continue;
      text += fmt::format(", {} by {}", r.moves.bytes[p],
                          eplb::copy_path_name(static_cast<eplb::copy_path>(p)));
    }
    const double s = r.moves.predicted_s;
    text +=
        s < 0.1 ? fmt::format("; about {:.3g} ms", s * 1e3) : fmt::format("; about {:.1f} s", s);
  }
  return text + "\n";
}

}  // namespace

std::string plan_text(const plan_report& r, const plan_options& o) {
  std::string text;
  if (!r.loads_told.empty()) text += fmt::format("loads    {}\n", r.loads_told);
  text += fmt::format("plan     {}\n", shape_text(r.plan->draft));
  if (!r.loads_told.empty()) {
    text += fmt::format("\n{}\n{}", gains_text(r), balance_text(r));
    if (r.repaired) text += moves_text(r);
  }
  if (const std::size_t empty = empty_slots(r.plan->draft); empty > 0) {
    text += fmt::format("note: {} slot(s) stay empty: no worker holds an expert twice\n", empty);
  }
  if (r.unmet.experts_below_min_replicas > 0) {
    text += fmt::format("unmet: {} expert(s), all layers counted, have fewer than {} replicas\n",
                        r.unmet.experts_below_min_replicas, o.min_replicas);
  }
  if (r.unmet.experts_on_one_node > 0) {
    text += fmt::format("note: {} expert(s), all layers counted, have all replicas on one node\n",
                        r.unmet.experts_on_one_node);
  }
  if (!o.export_file.empty()) {
    text += fmt::format("wrote {}{}\n", o.export_file,
                        r.shares_lost ? " (it has no word for shares: they are lost)" : "");
  }
  if (o.out.empty()) {
    return text + (o.export_file.empty() ? "nothing is written without --out FILE\n"
                                         : "no plan file is written without --out FILE\n");
  }
  return text + fmt::format("wrote {}; serve it with: moetier up --model {} --placement {}\n",
                            o.out, o.model.empty() ? "DIR" : o.model, o.out);
}

ordered_json plan_document(const plan_report& r, const plan_options& o) {
  const auto& gains = r.plan->gains;
  ordered_json document{{"schema", "moetier.plan/1"},
                        {"experts", r.plan->draft.experts},
                        {"slots_per_worker", r.plan->draft.slots_per_worker},
                        {"layers", ordered_json::array()}};
  for (const layer_gain& g : gains) {
    ordered_json row{{"layer", g.layer.value},
                     {"loaded", g.loaded},
                     {"balancedness_without", g.balancedness_without},
                     {"balancedness", g.balancedness},
                     {"bound", g.bound},
                     {"percent_of_optimal", g.percent_of_optimal},
                     {"starved_bound", g.starved_bound},
                     {"percent_of_starved_bound", g.percent_of_starved},
                     {"method", eplb::layer_method_name(g.method)}};
    if (r.repaired) {
      row["balancedness_before"] = g.balancedness_before;
      row["copies"] = g.copies;
      row["copies_reference"] = g.copies_reference;
    }
    document["layers"].push_back(std::move(row));
  }
  const spread with = spread_of(gains, [](auto& g) { return g.balancedness; });
  const spread percent = spread_of(
      gains, [](auto& g) { return g.percent_of_optimal; }, 100);
  document["balancedness"] = {{"mean", with.mean}, {"worst", with.worst}};
  document["percent_of_optimal"] = {{"mean", percent.mean}, {"worst", percent.worst}};
  if (r.repaired) {
    document["copies"] = sum_of(gains, &layer_gain::copies);
    document["copies_avoided"] =
        static_cast<std::int64_t>(sum_of(gains, &layer_gain::copies_reference)) -
        static_cast<std::int64_t>(sum_of(gains, &layer_gain::copies));
    if (r.expert_bytes != 0) {
      for (std::size_t p = 1; p < eplb::k_copy_paths; ++p)
        document["bytes"][eplb::copy_path_name(static_cast<eplb::copy_path>(p))] = r.moves.bytes[p];
      document["predicted_s"] = r.moves.predicted_s;
    }
  }
  document["experts_below_min_replicas"] = r.unmet.experts_below_min_replicas;
  if (!o.out.empty()) document["out"] = o.out;
  if (!o.export_file.empty())
    document["export"] = {{"file", o.export_file}, {"shares_lost", r.shares_lost}};
  return document;
}

}  // namespace moetier::cli
