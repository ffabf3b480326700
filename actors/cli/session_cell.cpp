#include "actors/cli/session_cell.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "actors/cli/bench_core.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::cli {
namespace {

const session_turn& turn_of(const std::vector<session_turn>& round, std::uint32_t sessions) {
  const auto found = std::find_if(round.begin(), round.end(),
                                  [&](const session_turn& t) { return t.sessions == sessions; });
  MOETIER_ASSERT(found != round.end());
  return *found;
}

}  // namespace

std::vector<session_cell> cells_of(std::span<const std::vector<session_turn>> rounds,
                                   const session_shape& shape) {
  MOETIER_ASSERT(!rounds.empty() && shape.steps >= 1);
  std::vector<session_cell> cells;
  for (const session_turn& first : rounds.front()) {
    std::vector<double> step_us, ratios, compute_us, shares;
    for (const auto& round : rounds) {
      const session_turn& turn = turn_of(round, first.sessions);
      const double took = static_cast<double>(turn.took);
      step_us.push_back(took / k_microsecond / shape.steps);
      ratios.push_back(took / static_cast<double>(turn_of(round, 1).took));
      compute_us.push_back(turn.compute_ns / k_microsecond / shape.steps);
      shares.push_back(turn.compute_ns / took / std::max(1U, shape.workers));
    }
    const spread_of cost = spread_of_samples(std::move(ratios));
    cells.push_back({.workers = shape.workers,
                     .tokens = shape.tokens,
                     .sessions = first.sessions,
                     .rounds = static_cast<std::uint32_t>(rounds.size()),
                     .step_us = spread_of_samples(std::move(step_us)).median,
                     .cost = cost.median,
                     .cost_min = cost.min,
                     .cost_max = cost.max,
                     .compute_us = spread_of_samples(std::move(compute_us)).median,
                     .compute_share = spread_of_samples(std::move(shares)).median});
  }
  return cells;
}

std::vector<std::uint32_t> order_of_round(std::vector<std::uint32_t> sessions, std::size_t round) {
  if (sessions.empty()) return sessions;
  const auto first = static_cast<std::ptrdiff_t>(round % sessions.size());
  std::rotate(sessions.begin(), sessions.begin() + first, sessions.end());
  return sessions;
}

std::uint32_t tokens_of_session(std::uint32_t tokens, std::uint32_t sessions, std::uint32_t index) {
  MOETIER_ASSERT(index < sessions);
  return tokens / sessions + (index < tokens % sessions ? 1 : 0);
}

nlohmann::ordered_json session_json(const session_cell& cell) {
  nlohmann::ordered_json j{
      {"workers", cell.workers}, {"tokens", cell.tokens},     {"sessions", cell.sessions},
      {"rounds", cell.rounds},   {"step_us", cell.step_us},   {"tokens_per_s", cell.tokens_per_s()},
      {"cost", cell.cost},       {"cost_min", cell.cost_min}, {"cost_max", cell.cost_max}};
  if (cell.compute_us > 0)
    j.update({{"compute_us", cell.compute_us}, {"compute_share", cell.compute_share}});
  return j;
}

table session_table(std::span<const session_cell> cells) {
  table t({"workers", "tokens", "sessions", "us for all tokens", "tokens/s", "cost", "least",
           "most", "compute us", "compute share"});
  for (const session_cell& c : cells) {
    const bool known = c.compute_us > 0;
    t.add({std::to_string(c.workers), std::to_string(c.tokens), std::to_string(c.sessions),
           fmt::format("{:.1f}", c.step_us), fmt::format("{:.0f}", c.tokens_per_s()),
           fmt::format("{:.2f}", c.cost), fmt::format("{:.2f}", c.cost_min),
           fmt::format("{:.2f}", c.cost_max), known ? fmt::format("{:.1f}", c.compute_us) : "-",
           known ? fmt::format("{:.2f}", c.compute_share) : "-"});
  }
  return t;
}

std::vector<measured_figure> session_figures(std::span<const session_cell> cells) {
  std::vector<measured_figure> figures;
  for (const session_cell& c : cells) {
    const std::string row =
        fmt::format("{} session(s), {} token(s), {} worker(s)", c.sessions, c.tokens, c.workers);
    figures.push_back({"cost", row, c.cost});
    figures.push_back({"tokens_per_s", row, c.tokens_per_s()});
  }
  return figures;
}

}  // namespace moetier::cli
