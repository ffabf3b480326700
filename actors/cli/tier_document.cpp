#include "actors/cli/tier_document.hpp"

#include <fmt/core.h>

namespace moetier::cli {
namespace {

using nlohmann::ordered_json;

std::string in_us(double us) {
  return us < 100 ? fmt::format("{:.1f}", us) : fmt::format("{:.0f}", us);
}

ordered_json split_json(const tier_cell& cell) {
  const call_split& s = cell.split;
  ordered_json j{{"total", s.total}, {"route", s.route}, {"pack", s.pack}, {"wire", s.wire}};
  if (cell.stages_known) {
    j.update(
        {{"queue", s.queue}, {"group", s.group}, {"compute", s.compute}, {"return", s.give_back}});
  } else {
    j["held"] = s.held;
  }
  j.update({{"combine", s.combine}, {"rest", s.rest}});
  return j;
}

}  // namespace

nlohmann::ordered_json tier_json(const tier_cell& cell) {
  ordered_json j{{"workers", cell.workers},
                 {"tokens", cell.tokens},
                 {"latency_us", latency_json(cell.total)},
                 {"stages_us",
                  {{"route", latency_json(cell.route)},
                   {"pack", latency_json(cell.pack)},
                   {"wait", latency_json(cell.wait)},
                   {"sum", latency_json(cell.sum)}}},
                 {"split_us", split_json(cell)},
                 {"echo_us", latency_json(cell.echo)},
                 {"tokens_per_s", cell.tokens_per_s()},
                 {"algbw", cell.gb_per_s()},
                 {"busbw", cell.gb_per_s()}};  // from one to one, no link carries more
  if (cell.compute_alone) j["compute_us"] = latency_json(*cell.compute_alone);
  if (const auto own = cell.own_share_us()) j["own_share_us"] = *own;
  if (const auto own = cell.own_share_echoes()) j["own_share_echoes"] = *own;
  if (const auto ratio = cell.roofline_ratio()) j["roofline_ratio"] = *ratio;
  return j;
}

table tier_table(std::span<const tier_cell> cells) {
  table t({"workers", "tokens", "p50 us", "p99 us", "tokens/s", "route", "wire", "queue", "compute",
           "combine", "rest", "echo us", "own share us", "in echoes"});
  for (const tier_cell& c : cells) {
    const call_split& s = c.split;
    const bool known = c.stages_known;
    const auto own = c.own_share_us();
    const auto echoes = c.own_share_echoes();
    t.add({std::to_string(c.workers), std::to_string(c.tokens), in_us(c.total.p50),
           in_us(c.total.p99), fmt::format("{:.0f}", c.tokens_per_s()), in_us(s.route + s.pack),
           in_us(s.wire), known ? in_us(s.queue) : "-", known ? in_us(s.compute) : "-",
           in_us(s.combine), in_us(s.rest + s.group + s.give_back + s.held), in_us(c.echo.p50),
           own ? in_us(*own) : "-", echoes ? fmt::format("{:.1f}", *echoes) : "-"});
  }
  return t;
}

std::vector<measured_figure> tier_figures(std::span<const tier_cell> cells) {
  std::vector<measured_figure> figures;
  for (const tier_cell& c : cells) {
    const std::string row = fmt::format("{} worker(s), {} token(s)", c.workers, c.tokens);
    figures.push_back({"p50_us", row, c.total.p50});
    figures.push_back({"p99_us", row, c.total.p99});
    figures.push_back({"tokens_per_s", row, c.tokens_per_s()});
    if (const auto v = c.own_share_us()) figures.push_back({"own_share_us", row, *v});
    if (const auto v = c.own_share_echoes()) figures.push_back({"own_share_echoes", row, *v});
    if (const auto v = c.roofline_ratio()) figures.push_back({"roofline_ratio", row, *v});
  }
  return figures;
}

}  // namespace moetier::cli
