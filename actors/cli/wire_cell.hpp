#pragma once
// One cell of `bench wire`: round trips of one size by one way, beside memory copies of the same
// size and run; and what the bench prints of all of them. Thread: any (values, pure functions).

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "actors/cli/figure_demand.hpp"
#include "actors/cli/latency.hpp"
#include "actors/cli/table.hpp"

namespace moetier::cli {

struct wire_cell {
  std::string way;
  std::string size;              // "16 rows", "1 MiB"
  std::uint64_t bytes_out = 0;   // payload of a message there
  std::uint64_t bytes_back = 0;  // and back
  std::uint32_t calls = 0;
  latency_figures round_trip{};
  double copy_gb_s = 0;   // memcpy of bytes_out, the best of the same run
  std::string skipped{};  // why there is no figure; the others are then empty

  // Both payloads over the median round trip: the rate one way, as only one is under way.
  double gb_per_s() const noexcept;
  double roofline_ratio() const noexcept;  // of the copy rate
};

inline constexpr std::array<figure_kind, 4> k_wire_figures{
    {{"p50_us"}, {"p99_us"}, {"algbw", true}, {"roofline_ratio", true}}};

nlohmann::ordered_json wire_json(const wire_cell& cell);
table wire_table(std::span<const wire_cell> cells);
std::vector<measured_figure> wire_figures(std::span<const wire_cell> cells);

}  // namespace moetier::cli
