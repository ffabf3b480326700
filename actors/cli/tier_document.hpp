#pragma once
// What `bench tier` prints: its cells as JSON, as a table, and as figures that --assert names.
// Thread: any (pure functions).

#include <array>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "actors/cli/figure_demand.hpp"
#include "actors/cli/table.hpp"
#include "actors/cli/tier_cell.hpp"

namespace moetier::cli {

inline constexpr std::array<figure_kind, 6> k_tier_figures{{{"p50_us"},
                                                            {"p99_us"},
                                                            {"own_share_us"},
                                                            {"own_share_echoes"},
                                                            {"tokens_per_s", true},
                                                            {"roofline_ratio", true}}};

nlohmann::ordered_json tier_json(const tier_cell& cell);
table tier_table(std::span<const tier_cell> cells);
std::vector<measured_figure> tier_figures(std::span<const tier_cell> cells);

}  // namespace moetier::cli
