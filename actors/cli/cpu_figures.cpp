#include "actors/cli/cpu_figures.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "actors/cli/table.hpp"

namespace moetier::cli {
namespace {

using nlohmann::ordered_json;

constexpr double k_norm_max = 1e-5;           // of f32 chains over K against double
constexpr double k_worst_max = 1.0 / 262144;  // 2^-18

struct row_aim {
  std::uint32_t rows;
  cpu_aim of_product;
  cpu_aim of_expert;
};
constexpr row_aim k_aims[] = {{1, {.94, .61, 2.0}, {.cold = .88}},
                              {4, {.86, .94, 1.5}, {.cold = .86}},
                              {16, {.92, .95, 1.0}, {.cold = .91, .two = 1.85}},
                              {64, {.92, .96, 1.0}, {.cold = .91, .two = 1.85}}};
// Where the first shape wants more of the peer than the second.
constexpr std::pair<std::uint32_t, double> k_peer_aims[] = {{4, 1.9}, {16, 1.4}, {64, 1.1}};

std::string share(double value, double aim) {
  std::string text = fmt::format("{:.2f}", value);
  if (aim > 0)
    text += value + 0.005 >= aim ? fmt::format(" (aim {:.2f})", aim)
                                 : fmt::format(" (aim {:.2f}, missed)", aim);
  return text;
}

// "1.90 (aim 1.85); fma 1.97".
std::string two_threads_text(const cpu_figures& f) {
  if (f.two_threads <= 0) return "-";
  return share(f.two_threads, f.aim.two) + fmt::format("; fma {:.2f}", f.two_fma);
}

std::vector<std::string> cells_of(const cpu_figures& f) {
  const std::string shape = f.what == "expert"
                                ? fmt::format("expert H {} I {}", f.size.outputs, f.size.depth)
                                : fmt::format("N {} K {}", f.size.outputs, f.size.depth);
  if (!f.oracle.pass())
    return {shape, fmt::format("{}", f.rows), "oracle failed", "-", "-", "-", "-", "-", "-"};
  const double over = f.over_peer_cold();
  return {
      shape,
      fmt::format("{}", f.rows),
      fmt::format("{:.0f}", f.cold_us.median),
      fmt::format("{:.1f}", f.cold_gflops()),
      share(f.cold_of.median, f.aim.cold),
      fmt::format("{:.1f}", f.warm_gflops()),
      share(f.warm_of.max, f.aim.warm),
      over > 0 ? share(over, f.aim.peer_cold) + fmt::format("; {:.2f}", f.over_peer_warm()) : "-",
      two_threads_text(f)};
}

ordered_json json_of(const spread_of& s) {
  return {{"median", s.median}, {"min", s.min}, {"max", s.max}, {"n", s.count}};
}

}  // namespace

std::string name_of(const product_size& size) {
  return fmt::format("{}x{}", size.outputs, size.depth);
}

cpu_aim aim_of_product(const product_size& size, std::uint32_t rows) {
  constexpr product_size k_first{2048, 768};
  if (size != k_first && size != product_size{768, 2048}) return {};
  for (const row_aim& a : k_aims) {
    if (a.rows != rows) continue;
    cpu_aim aim = a.of_product;
    for (const auto& [at, more] : k_peer_aims) {
      if (at == rows && size == k_first) aim.peer_cold = more;
    }
    return aim;
  }
  return {};
}

cpu_aim aim_of_expert(std::uint32_t rows) {
  for (const row_aim& a : k_aims) {
    if (a.rows == rows) return a.of_expert;
  }
  return {};
}

bool cpu_oracle::pass() const noexcept {
  return norm <= k_norm_max && worst <= k_worst_max && same_bits;
}

double cpu_figures::over_peer_cold() const noexcept {
  return peer.form.empty() ? 0 : peer.cold_us.median / cold_us.median;
}

double cpu_figures::over_peer_warm() const noexcept {
  return peer.form.empty() ? 0 : peer.warm_us.min / warm_us.min;
}

std::string cpu_table_text(const std::vector<cpu_figures>& all, const std::string& peer_name,
                           const cpu_table_look& look) {
  const std::string peer = peer_name.empty() ? "peer" : peer_name + " f32";
  const std::vector<std::string> heads{
      "weights bf16",      "rows",         "cold us", "GFLOP/s",
      "of min(fma, read)", "warm GFLOP/s", "of fma",  "over " + peer + ", cold; warm",
      "2 threads"};
  if (!look.markdown) {
    table t(heads);
    for (const cpu_figures& f : all) t.add(cells_of(f));
    std::string text = t.text();
    text.pop_back();  // say() ends the line
    return text;
  }
  std::string text = fmt::format("| {} |\n|---|", fmt::join(heads, " | "));
  for (std::size_t i = 1; i < heads.size(); ++i) text += "--:|";
  for (const cpu_figures& f : all) text += fmt::format("\n| {} |", fmt::join(cells_of(f), " | "));
  return text;
}

ordered_json cpu_json(const cpu_figures& f, const std::string& peer_name, bool quiet) {
  ordered_json row{{"kernel", f.what}};
  if (f.what == "expert") {
    row["shape"] = {{"hidden_size", f.size.outputs}, {"intermediate_size", f.size.depth}};
  } else {
    row["shape"] = {{"outputs", f.size.outputs}, {"depth", f.size.depth}};
  }
  row.update({{"format", "bf16"}, {"rows", f.rows}, {"quiet", quiet}});
  row["oracle"] = {{"pass", f.oracle.pass()},
                   {"norm", f.oracle.norm},
                   {"worst", f.oracle.worst},
                   {"same_bits_among_more_rows", f.oracle.same_bits}};
  if (!f.oracle.pass()) return row;
  row["cold"] = {{"t_us", json_of(f.cold_us)},
                 {"gflops", f.cold_gflops()},
                 {"weights_gb_s", f.weight_bytes / f.cold_us.median / 1e3},
                 {"of_ceiling", json_of(f.cold_of)}};
  row["warm"] = {
      {"t_us", json_of(f.warm_us)}, {"gflops", f.warm_gflops()}, {"of_fma", json_of(f.warm_of)}};
  row["ceilings"] = {{"fma_gflops", json_of(f.fma_gflops)},
                     {"read_gb_s_1_stream", json_of(f.read_gb_s_1)},
                     {"read_gb_s_4_streams", json_of(f.read_gb_s_4)}};
  if (!f.peer.form.empty()) {
    row["peer"] = {{"name", peer_name},
                   {"form", f.peer.form},
                   {"cold_us", json_of(f.peer.cold_us)},
                   {"warm_us", json_of(f.peer.warm_us)},
                   {"norm", f.peer.norm},
                   {"times_its_speed_cold", f.over_peer_cold()},
                   {"times_its_speed_warm", f.over_peer_warm()}};
  }
  if (f.two_threads > 0)
    row["two_threads"] = {{"times_one", f.two_threads}, {"fma_times_one", f.two_fma}};
  if (f.aim.cold > 0) {
    row["aim"] = {{"cold_of_ceiling", f.aim.cold}};
    if (f.aim.warm > 0) row["aim"]["warm_of_fma"] = f.aim.warm;
    if (f.aim.peer_cold > 0) row["aim"]["times_peer_cold"] = f.aim.peer_cold;
    if (f.aim.two > 0) row["aim"]["two_threads_times_one"] = f.aim.two;
  }
  return row;
}

}  // namespace moetier::cli
