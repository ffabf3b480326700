#include "actors/cli/device_document.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moetier::cli {
namespace {

using kernels::cuda::bench::layer_figures;
using kernels::cuda::bench::time_spread;
using nlohmann::ordered_json;

constexpr const char* k_columns =
    "{:9} {:9} {:>6} {:7} {:>8} {:>8} {:>8} {:>8} {:>8} {:>6} {:>8} {:>5} "
    "{:>8} {:>6} {:>8} {:>4} {:>8} {:>5}";

std::string number(double value, int digits = 1) {
  return value > 0 ? fmt::format("{:.{}f}", value, digits) : "-";
}

double floor_of(const device_result& r) {
  return floor_us(*r.row.shape, r.row.quant, r.row.tokens, r.active);
}

// "ladder" of "ladder: 132 blocks, 4 stages".
std::string variant_of(const std::string& launch) { return launch.substr(0, launch.find(':')); }

ordered_json json_of(const time_spread& t) {
  return {{"median", t.median}, {"min", t.min}, {"max", t.max}, {"n", t.n}};
}

}  // namespace

double target_us(const device_result& r) noexcept {
  if (r.row.target.us > 0) return r.row.target.us;
  return r.figures ? r.row.target.of_probe * r.figures->probe.median : 0;
}

double run_floor_us(const device_result& r, const device_run& run) noexcept {
  if (!r.figures) return 0;
  const double rate = r.row.quant == quant_kind::none ? run.ceilings.bf16_tf : run.ceilings.fp8_tf;
  const double computed = rate > 0 ? layer_flops(*r.row.shape, r.row.tokens) / (rate * 1e6) : 0;
  return std::max(r.figures->probe.median, computed);
}

std::string device_head() {
  return fmt::format(fmt::runtime(k_columns), "shape", "format", "T", "routing", "us", "min", "max",
                     "rested", "eager", "sort", "floor", "of", "probe", "of", "target", "met",
                     "norm", "MHz");
}

std::string device_line(const device_result& r) {
  const std::string row =
      fmt::format("{:9} {:9} {:>6} {:7}", r.row.shape->name, device_format_name(r.row.quant),
                  r.row.tokens, routing_kind_name(r.row.routing));
  if (!r.figures) return fmt::format("{}  {}", row, r.why);
  const layer_figures& f = *r.figures;
  if (!r.passed())
    return fmt::format("{}  WRONG, figures withheld: norm {:.2e} (at most {:.0e}), worst {:.2e}",
                       row, f.oracle.norm, f.oracle.norm_max, f.oracle.worst);
  const double us = f.layer.median;
  const double target = target_us(r);
  return fmt::format(fmt::runtime(k_columns), r.row.shape->name, device_format_name(r.row.quant),
                     r.row.tokens, routing_kind_name(r.row.routing), number(us),
                     number(f.layer.min), number(f.layer.max), number(f.rested_us),
                     number(f.eager_us), number(f.sort_us), number(floor_of(r)),
                     number(floor_of(r) / us, 2), number(f.probe.median),
                     number(us / f.probe.median, 3), number(target),
                     target <= 0    ? "-"
                     : us <= target ? "yes"
                                    : "NO",
                     fmt::format("{:.1e}", f.oracle.norm), number(f.sm_mhz, 0));
}

std::string ceilings_line(const device_run& run) {
  const auto& c = run.ceilings;
  return fmt::format(
      "{}, driver {}: read {} TB/s, copy {} TB/s, bf16 {} TF, fp8 {} TF, {} us a graph node{}{}",
      run.facts.name, run.facts.driver, number(c.read_tb_s, 2), number(c.copy_tb_s, 2),
      number(c.bf16_tf, 0), number(c.fp8_tf, 0), number(c.node_gap_us, 2),
      c.note.empty() ? "" : "; ", c.note);
}

ordered_json device_json(const device_result& r, const device_run& run) {
  const device_shape& shape = *r.row.shape;
  ordered_json row{{"shape", shape.name},
                   {"format", device_format_name(r.row.quant)},
                   {"routing", routing_kind_name(r.row.routing)},
                   {"T", r.row.tokens},
                   {"R", std::uint64_t{r.row.tokens} * shape.k},
                   {"active", r.active},
                   {"padded_rows", r.padded},
                   {"backend", r.backend},
                   {"floor_us", floor_of(r)}};
  if (r.row.target.us > 0) row["target"]["us"] = r.row.target.us;
  if (r.row.target.of_probe > 0) row["target"]["of_probe"] = r.row.target.of_probe;
  if (!r.why.empty()) row["why"] = r.why;
  if (r.figures) {
    const layer_figures& f = *r.figures;
    row["variant"] = variant_of(f.launch);
    row["launch_config"] = f.launch;
    row["oracle"] = {{"pass", f.oracle.pass},
                     {"norm", f.oracle.norm},
                     {"norm_max", f.oracle.norm_max},
                     {"worst", f.oracle.worst},
                     {"rows", f.oracle.rows}};
    row["probe_us"] = f.probe.median;
    if (r.passed()) {
      const double us = f.layer.median;
      row["t_us"] = json_of(f.layer);
      row["eager_us"] = f.eager_us;
      if (f.rested_us > 0) row["rested_us"] = f.rested_us;
      row["sort_us"] = f.sort_us;
      for (const kernels::cuda::bench::launch_stage& stage : f.stages.each) {
        row["stages"].push_back({{"kernel", stage.kernel}, {"us", stage.us}});
        if (stage.kernel.find("combine") != std::string::npos) row["combine_us"] = stage.us;
      }
      if (!f.stages.note.empty()) row["stages_note"] = f.stages.note;
      row["of_floor"] = floor_of(r) / us;
      row["of_run_floor"] = run_floor_us(r, run) / us;
      row["of_probe"] = us / f.probe.median;
      row["tf"] = layer_flops(shape, r.row.tokens) / us / 1e6;
      if (const double target = target_us(r); target > 0) row["target"]["met"] = us <= target;
    }
    row["clocks"] = {{"sm_mhz", f.sm_mhz}};
  }
  row["ceilings"] = {{"read_tb_s", run.ceilings.read_tb_s},
                     {"copy_tb_s", run.ceilings.copy_tb_s},
                     {"bf16_tf", run.ceilings.bf16_tf},
                     {"fp8_tf", run.ceilings.fp8_tf},
                     {"node_gap_us", run.ceilings.node_gap_us}};
  row["device"] = run.facts.name;
  row["driver"] = run.facts.driver;
  row["commit"] = run.commit;
  return row;
}

std::string markdown_head() {
  return "| layer | format | tokens, routing | us | after a rest, us | sort, us | of the floor | "
         "of the read probe | target, us |\n|---|---|---|--:|--:|--:|--:|--:|--:|";
}

std::string markdown_line(const device_result& r) {
  const std::string row =
      fmt::format("| {} | {} | {}, {} |", r.row.shape->name, device_format_name(r.row.quant),
                  r.row.tokens, routing_kind_name(r.row.routing));
  if (!r.passed()) return row + " - | - | - | - | - | - |";
  const layer_figures& f = *r.figures;
  const double us = f.layer.median;
  const double target = target_us(r);
  return fmt::format(
      "{} {} | {} | {} | {} | {} | {} |", row, number(us), number(f.rested_us), number(f.sort_us),
      number(floor_of(r) / us, 2), number(us / f.probe.median, 3),
      target > 0 ? fmt::format("{:.0f}{}", target, us <= target ? "" : " (missed)") : "-");
}

}  // namespace moetier::cli
