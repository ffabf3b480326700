// The experts of one layer on this machine's GPU, beside what its memory and its matrix units can
// do. The numbers come from kernels/cuda/bench; which rows, and how they are shown, is decided
// here.
#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "actors/build_info.hpp"
#include "actors/cli/bench_kernels.hpp"
#include "actors/cli/device_document.hpp"

#ifdef MOETIER_HAS_CUDA
#include "kernels/cuda/make_expert_layer.hpp"
#endif

namespace moetier::cli {
namespace {

std::string names_of_shapes() {
  std::string names;
  for (const device_shape& s : device_shapes())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", s.name);
  return names;
}

expected<std::vector<device_row>> chosen_rows(const kernel_bench_options& options) {
  std::vector<device_row> rows;
  for (const device_row& row : device_rows()) {
    const bool by_name =
        (options.shape.empty() || options.shape == row.shape->name) &&
        (options.format.empty() || options.format == device_format_name(row.quant));
    const bool by_rows = options.rows.empty() || std::find(options.rows.begin(), options.rows.end(),
                                                           row.tokens) != options.rows.end();
    if (by_name && by_rows) rows.push_back(row);
  }
  if (rows.empty())
    return fail(reason::config_invalid, "--shape, --format, --rows", "a choice without rows",
                "shapes " + names_of_shapes() + "; formats bf16, fp8_block");
  return rows;
}

#ifdef MOETIER_HAS_CUDA

namespace bench = kernels::cuda::bench;

std::string_view identity_of_format(quant_kind quant) {
  return quant == quant_kind::none ? "moetier.cuda.sm90_bf16.none"
                                   : "moetier.cuda.sm90_fp8.fp8_block";
}

std::vector<bench::layer_batch> batches_of(const device_row& row, std::uint64_t seed) {
  std::vector<bench::layer_batch> batches;
  for (std::uint32_t i = 0; i < routings_of(row.tokens); ++i) {
    routed_rows routed = route_bench_rows({.slots = row.shape->slots,
                                           .k = row.shape->k,
                                           .rows = row.tokens,
                                           .kind = row.routing,
                                           .seed = seed,
                                           .routing = i});
    std::vector<std::uint32_t> active = active_slots(routed.slot_ids);
    batches.push_back({std::move(routed.slot_ids), std::move(routed.weights), std::move(active)});
  }
  return batches;
}

// One row, with the pages of its shape and format at hand.
device_result measure(const device_row& row, bench::layer_bench& measured,
                      const kernel_bench_options& options) {
  device_result result{.row = row, .backend = std::string(identity_of_format(row.quant))};
  const auto batches = batches_of(row, options.seed);
  for (const bench::layer_batch& b : batches) {
    result.active += static_cast<double>(b.active.size()) / static_cast<double>(batches.size());
    result.padded +=
        static_cast<double>(padded_rows(b.slot_ids)) / static_cast<double>(batches.size());
  }
  auto figures = measured.measure({.rows = row.tokens,
                                   .k = row.shape->k,
                                   .layers = layers_of_graph(*row.shape, row.quant, row.tokens),
                                   .repeat = options.repeat,
                                   .seed = options.seed,
                                   .batches = batches});
  if (figures)
    result.figures = std::move(*figures);
  else
    result.why = figures.error().text;
  return result;
}

expected<part_report> measure_all(const std::vector<device_row>& rows,
                                  const kernel_bench_options& options) {
  auto stream = bench::bench_stream::open();
  if (!stream) return part_report{.skipped = stream.error().text};
  auto ceilings = bench::measure_ceilings(**stream);
  if (!ceilings) return tl::unexpected(ceilings.error());
  const device_run run{(*stream)->facts(), std::move(*ceilings), std::string(this_build().commit)};
  options.say(ceilings_line(run));
  options.say(options.markdown ? markdown_head() : device_head());
  part_report report;
  const auto take = [&](const device_result& result) {
    options.say(options.markdown ? markdown_line(result) : device_line(result));
    report.rows.push_back(device_json(result, run));
    report.errors += result.passed() ? 0U : 1U;
  };
  // Rows of one shape and format follow each other and share their pages.
  for (auto row = rows.begin(); row != rows.end();) {
    const auto same = [&](const device_row& r) {
      return r.shape == row->shape && r.quant == row->quant;
    };
    const auto end = std::find_if_not(row, rows.end(), same);
    const auto layer = kernels::cuda::make_expert_layer(
        identity_of_format(row->quant), expert_shape_of(*row->shape, row->quant), run.facts.size);
    std::string why = layer ? "" : layer.error().text;
    std::unique_ptr<bench::layer_bench> measured;
    if (layer) {
      auto opened = bench::layer_bench::open(**stream, **layer, row->shape->slots, options.seed);
      if (opened)
        measured = std::move(*opened);
      else
        why = opened.error().text;
    }
    for (; row != end; ++row) {
      take(measured != nullptr
               ? measure(*row, *measured, options)
               : device_result{.row = *row,
                               .backend = std::string(identity_of_format(row->quant)),
                               .why = why});
    }
  }
  return report;
}

#else

expected<part_report> measure_all(const std::vector<device_row>&, const kernel_bench_options&) {
  return part_report{.skipped = "device: skipped, this build has no CUDA code"};
}

#endif

}  // namespace

expected<part_report> bench_device(const kernel_bench_options& options) {
  const auto rows = chosen_rows(options);
  if (!rows) return tl::unexpected(rows.error());
  return measure_all(*rows, options);
}

}  // namespace moetier::cli
