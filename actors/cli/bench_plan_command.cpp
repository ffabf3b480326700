#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "actors/cli/bench_document.hpp"
#include "actors/cli/bench_plan.hpp"
#include "actors/cli/commands.hpp"
#include "actors/cli/output_text.hpp"
#include "actors/cli/svg_plot.hpp"
#include "actors/cli/table.hpp"

namespace moetier::cli {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view k_part_names = "planned, realised, split, small_batch";

std::string number(double v, int digits) { return fmt::format("{:.{}f}", v, digits); }

ordered_json json_of(const planned_row& r) {
  return {{"shape", r.shape},
          {"loads", r.loads},
          {"layers", r.layers},
          {"method", r.method},
          {"balancedness_without", r.none},
          {"greedy_percent", {{"mean", r.greedy}, {"worst", r.greedy_worst}}},
          {"ours_percent", {{"mean", r.ours}, {"worst", r.ours_worst}}},
          {"ours_percent_of_starved_bound", {{"mean", r.feasible}, {"worst", r.feasible_worst}}},
          {"greedy_61_layers_ms", r.greedy_61_ms},
          {"ours_61_layers_ms", r.ours_61_ms}};
}

ordered_json json_of(const realised_row& r) {
  return {{"shape", r.shape},
          {"trace", r.trace},
          {"layers", r.layers},
          {"windows", r.windows},
          {"drift", r.drift},
          {"greedy",
           {{"even", r.greedy_even},
            {"even_worst", r.greedy_even_worst},
            {"split_per_batch", r.greedy_split},
            {"copies", r.greedy_copies}}},
          {"ours",
           {{"fresh", r.ours_fresh},
            {"ring", r.ours_ring},
            {"ring_worst", r.ours_ring_worst},
            {"split_per_batch", r.ours_split},
            {"copies", r.ours_copies},
            {"windows_without_move", r.windows_without_move},
            {"planned_percent", r.ours_planned_percent}}},
          {"warm_61_layers_ms", r.warm_61_ms}};
}

ordered_json json_of(const split_row& r) {
  return {{"shape", r.shape},
          {"wrap_us", r.wrap_us},
          {"exact_us", r.exact_us},
          {"robust_us", r.robust_us}};
}

ordered_json json_of(const small_batch_row& r) {
  return {{"shape", r.shape},
          {"tokens", r.tokens},
          {"balanced_us", r.balanced_us},
          {"primary_us", r.primary_us}};
}

void put(const std::vector<planned_row>& rows) {
  table t({"planned", "loads", "without", "greedy %", "worst", "ours %", "worst", "starved %",
           "worst", "how", "greedy ms/61", "ours ms/61"});
  for (const planned_row& r : rows) {
    t.add({r.shape, r.loads, number(r.none, 3), number(r.greedy, 2), number(r.greedy_worst, 2),
           number(r.ours, 3), number(r.ours_worst, 3), number(r.feasible, 2),
           number(r.feasible_worst, 2), r.method, number(r.greedy_61_ms, 2),
           number(r.ours_61_ms, 2)});
  }
  std::fputs(t.text().c_str(), stdout);
}

void put(const std::vector<realised_row>& rows) {
  table t({"realised", "trace", "drift", "greedy even", "split", "copies", "ours fresh", "ring",
           "worst", "split", "copies", "no move %", "planned %", "warm ms/61"});
  for (const realised_row& r : rows) {
    t.add({r.shape, r.trace, number(r.drift, 3), number(r.greedy_even, 3),
           number(r.greedy_split, 3), number(r.greedy_copies, 1), number(r.ours_fresh, 3),
           number(r.ours_ring, 3), number(r.ours_ring_worst, 3), number(r.ours_split, 3),
           number(r.ours_copies, 2), number(100 * r.windows_without_move, 1),
           number(r.ours_planned_percent, 2), number(r.warm_61_ms, 0)});
  }
  std::fputs(t.text().c_str(), stdout);
}

void put(const std::vector<split_row>& rows) {
  table t({"us per layer", "window-wrap", "exact split", "robust shares"});
  for (const split_row& r : rows)
    t.add({r.shape, number(r.wrap_us, 1), number(r.exact_us, 1), number(r.robust_us, 1)});
  std::fputs(t.text().c_str(), stdout);
}

void put(const std::vector<small_batch_row>& rows) {
  table t({"small batch", "tokens", "balanced us", "primary us"});
  for (const small_batch_row& r : rows)
    t.add({r.shape, std::to_string(r.tokens), number(r.balanced_us, 1), number(r.primary_us, 1)});
  std::fputs(t.text().c_str(), stdout);
}

std::string file_name(const std::string& trace, const std::string& shape, const char* what) {
  std::string name = fmt::format("{}_{}_{}.svg", what, shape, trace);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '/' || c == ' ' || c == ','; }, '-');
  return name;
}

expected<void> plot(const realised_story& s, const std::string& folder) {
  std::vector<plot_line> balance{
      {"ours, split per batch", {}}, {"ours, shares", {}}, {"reference greedy", {}}};
  std::vector<plot_line> copies{{"ours", {}}, {"reference greedy", {}}};
  for (const realised_window& w : s.windows) {
    balance[0].values.push_back(w.ours_split);
    balance[1].values.push_back(w.ours_ring);
    balance[2].values.push_back(w.greedy_even);
    copies[0].values.push_back(w.ours_copies);
    copies[1].values.push_back(w.greedy_copies);
  }
  const std::string title = fmt::format("{}, {}", s.shape, s.trace);
  const std::pair<const char*, std::string> plots[] = {
      {"balance",
       svg_lines("Realised balance: " + title, "window", "mean / largest load", balance)},
      {"copies", svg_lines("Copies per layer: " + title, "window", "experts copied", copies)},
      {"heat", svg_heat("Load of the workers, 1 = mean: " + title, "worker", "window",
                        {{"without plan", s.without_plan}, {"ours", s.worker_load}})}};
  for (const auto& [what, text] : plots) {
    const auto path = std::filesystem::path(folder) / file_name(s.trace, s.shape, what);
    if (auto written = write_text(path.string(), text); !written) return written;
  }
  return {};
}

}  // namespace

expected<exit_code> run_bench_plan(const command_line& line) {
  const plan_bench_options& o = line.plan_bench;
  if (!o.part.empty() &&
      (", " + std::string(k_part_names) + ",").find(", " + o.part + ",") == std::string::npos)
    return fail(reason::config_invalid, "--part", o.part, k_part_names);
  if (!o.plots.empty()) {
    std::error_code wrong;
    std::filesystem::create_directories(o.plots, wrong);
    if (wrong) return fail(reason::file_unwritable, o.plots, wrong.message());
  }
  ordered_json document = bench_document("plan");
  document["problem"] = {{"seed", o.seed},       {"repeat", o.repeat},   {"layers", o.layers},
                         {"windows", o.windows}, {"domains", o.domains}, {"trace", o.trace}};
  const auto show = [&](const char* part, const auto& rows) {
    for (const auto& r : rows) document["parts"][part].push_back(json_of(r));
    if (!line.json) put(rows);
    std::fflush(stdout);
  };
  const auto asked = [&](std::string_view part) { return o.part.empty() || o.part == part; };
  if (asked("planned")) {
    const auto rows = bench_planned(o);
    if (!rows) return tl::unexpected(rows.error());
    show("planned", *rows);
  }
  if (asked("realised")) {
    if (o.domains.empty() && o.trace.empty() && !o.part.empty())
      return fail(reason::config_invalid, "--domains", "not given",
                  "a file of recorded loads, or --trace: realised balance needs one");
    const auto figures = bench_realised(o);
    if (!figures) return tl::unexpected(figures.error());
    if (!figures->rows.empty()) show("realised", figures->rows);
    for (const realised_story& s : figures->stories) {
      if (o.plots.empty()) break;
      if (auto done = plot(s, o.plots); !done) return tl::unexpected(done.error());
    }
  }
  if (asked("split")) {
    const auto rows = bench_split(o);
    if (!rows) return tl::unexpected(rows.error());
    show("split", *rows);
  }
  if (asked("small_batch")) {
    const auto rows = bench_small_batch(o);
    if (!rows) return tl::unexpected(rows.error());
    show("small_batch", *rows);
  }
  if (line.json) std::fputs((document.dump(1) + "\n").c_str(), stdout);
  return exit_code::done;
}

}  // namespace moetier::cli
