#include "actors/cli/wire_cell.hpp"

#include <fmt/core.h>

namespace moetier::cli {

double wire_cell::gb_per_s() const noexcept {
  return static_cast<double>(bytes_out + bytes_back) / round_trip.p50 / 1e3;
}

double wire_cell::roofline_ratio() const noexcept { return gb_per_s() / copy_gb_s; }

nlohmann::ordered_json wire_json(const wire_cell& cell) {
  nlohmann::ordered_json j{{"way", cell.way},
                           {"size", cell.size},
                           {"bytes_out", cell.bytes_out},
                           {"bytes_back", cell.bytes_back}};
  if (!cell.skipped.empty()) {
    j["skipped"] = cell.skipped;
    return j;
  }
  j.update({{"calls", cell.calls},
            {"latency_us", latency_json(cell.round_trip)},
            {"algbw", cell.gb_per_s()},
            {"busbw", cell.gb_per_s()},  // from one to one, no link carries more
            {"copy_gb_s", cell.copy_gb_s},
            {"roofline_ratio", cell.roofline_ratio()}});
  return j;
}

table wire_table(std::span<const wire_cell> cells) {
  table t({"way", "size", "bytes", "p50 us", "p99 us", "GB/s one way", "memcpy GB/s", "of memcpy"});
  const auto in_us = [](double us) {
    return us < 100 ? fmt::format("{:.2f}", us) : fmt::format("{:.0f}", us);
  };
  for (const wire_cell& c : cells) {
    if (!c.skipped.empty()) {
      t.add({c.way, c.size, std::to_string(c.bytes_out), "-", "-", "-", "-", "-"});
      continue;
    }
    t.add({c.way, c.size, std::to_string(c.bytes_out), in_us(c.round_trip.p50),
           in_us(c.round_trip.p99), fmt::format("{:.2f}", c.gb_per_s()),
           fmt::format("{:.1f}", c.copy_gb_s), fmt::format("{:.2f}", c.roofline_ratio())});
  }
  return t;
}

std::vector<measured_figure> wire_figures(std::span<const wire_cell> cells) {
  std::vector<measured_figure> figures;
  for (const wire_cell& c : cells) {
    if (!c.skipped.empty()) continue;
    const std::string row = c.way + ", " + c.size;
    figures.push_back({"p50_us", row, c.round_trip.p50});
    figures.push_back({"p99_us", row, c.round_trip.p99});
    figures.push_back({"algbw", row, c.gb_per_s()});
    figures.push_back({"roofline_ratio", row, c.roofline_ratio()});
  }
  return figures;
}

}  // namespace moetier::cli
