#pragma once
// What `bench sessions` makes of its rounds: the time that the same tokens take with several
// sessions over the time with one. Each round gives every number of sessions its turn, so that what
// the machine does meanwhile hits all of them; the cost is the median over rounds of the ratio
// within the round. Thread: any (values, pure functions).

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "actors/cli/figure_demand.hpp"
#include "actors/cli/table.hpp"
#include "schemas/base/time.hpp"

namespace moetier::cli {

// One turn: every session has done its steps.
struct session_turn {
  std::uint32_t sessions = 1;
  duration_ns took = 0;
  double compute_ns = 0;  // of all workers, by their clocks; 0 = not known
};

struct session_cell {
  std::uint32_t workers = 0;
  std::uint32_t tokens = 0;  // of a step of all sessions together
  std::uint32_t sessions = 0;
  std::uint32_t rounds = 0;
  double step_us = 0;  // median time in which all of the tokens went through once
  double cost = 0;     // over one session's
  double cost_min = 0, cost_max = 0;
  double compute_us = 0;     // of all workers in such a step, median; 0 = not known
  double compute_share = 0;  // of the workers' time
  double tokens_per_s() const noexcept { return 1e6 * tokens / step_us; }
};

struct session_shape {
  std::uint32_t workers = 0;
  std::uint32_t tokens = 0;
  std::uint32_t steps = 0;  // of every session in one turn
};

// One cell for each number of sessions, in the order of the first round. Requires: at least one
// round, all of the same numbers in any order, one of them 1; steps >= 1.
std::vector<session_cell> cells_of(std::span<const std::vector<session_turn>> rounds,
                                   const session_shape& shape);

// The order in which a round gives turns: another one each round, so that nobody is always first.
std::vector<std::uint32_t> order_of_round(std::vector<std::uint32_t> sessions, std::size_t round);

// Tokens of session `index` of `sessions`; they add up to `tokens` and differ by one at most.
std::uint32_t tokens_of_session(std::uint32_t tokens, std::uint32_t sessions, std::uint32_t index);

inline constexpr std::array<figure_kind, 2> k_session_figures{{{"cost"}, {"tokens_per_s", true}}};

nlohmann::ordered_json session_json(const session_cell& cell);
table session_table(std::span<const session_cell> cells);
std::vector<measured_figure> session_figures(std::span<const session_cell> cells);

}  // namespace moetier::cli
