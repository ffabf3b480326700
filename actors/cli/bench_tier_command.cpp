#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "actors/cli/bench_core.hpp"
#include "actors/cli/bench_document.hpp"
#include "actors/cli/bench_parts.hpp"
#include "actors/cli/bench_report.hpp"
#include "actors/cli/closed_loop.hpp"
#include "actors/cli/commands.hpp"
#include "actors/cli/direct_session.hpp"
#include "actors/cli/embedded_tier.hpp"
#include "actors/cli/tier_document.hpp"
#include "transport/exchange/shape.hpp"

namespace moetier::cli {
namespace {

using nlohmann::ordered_json;

// Calls are measured in so many batches at most, each of so many calls at least.
constexpr std::uint32_t k_batches_max = 40;
constexpr std::uint32_t k_batch_calls_min = 20;
// Calls before a batch: who was asked for its metrics has gone to sleep meanwhile.
constexpr std::uint32_t k_wake_calls = 5;

// A tier that is measured: the running one, or one of our own with metrics to read.
struct measured_tier {
  std::string address;
  std::vector<std::string> workers;  // HTTP addresses; none of a running tier
};

expected<std::vector<call_batch>> measure_batches(closed_loop& loop, const measured_tier& tier,
                                                  std::uint32_t warmup, std::uint32_t calls) {
  const auto call_some = [&loop](std::uint32_t count) -> expected<std::vector<call_sample>> {
    std::vector<call_sample> samples;
    samples.reserve(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      auto sample = loop.call();
      if (!sample) return tl::unexpected(sample.error());
      samples.push_back(*sample);
    }
    return samples;
  };
  if (const auto warm = call_some(warmup); !warm) return tl::unexpected(warm.error());
  const std::uint32_t batches = std::clamp(calls / k_batch_calls_min, 1U, k_batches_max);
  std::vector<call_batch> all;
  auto before = read_stage_sums(tier.workers);
  if (!before) return tl::unexpected(before.error());
  for (std::uint32_t b = 0; b < batches; ++b) {
    if (const auto woken = call_some(k_wake_calls); !woken) return tl::unexpected(woken.error());
    auto samples = call_some(calls / batches + (b < calls % batches ? 1 : 0));
    if (!samples) return tl::unexpected(samples.error());
    auto after = read_stage_sums(tier.workers);
    if (!after) return tl::unexpected(after.error());
    all.push_back({.calls = std::move(*samples), .workers = *after - *before});
    before = after;
  }
  return all;
}

latency_figures figures_by(std::span<const call_batch> batches,
                           duration_ns (*part)(const call_sample&)) {
  std::vector<std::uint64_t> times;
  for (const call_batch& b : batches) {
    for (const call_sample& c : b.calls) times.push_back(part(c));
  }
  return figures_of(std::move(times));
}

expected<tier_cell> measure_cell(const command_line& line, const config::settings& settings,
                                 const measured_tier& tier, std::uint32_t tokens,
                                 ordered_json& problem) {
  const bench_options& o = line.bench;
  const bench_shape shape{tokens, o.warmup, o.calls};
  auto session = direct_session::open(
      {.address = tier.address, .tokens_max = tokens, .limit = line.timeout}, settings);
  if (!session) return tl::unexpected(session.error());
  client::source_session& source = (*session)->source();
  const transport::routing_snapshot& snapshot = source.snapshot();
  const layer_id layer = bench_layer(snapshot.model, o.layer);
  problem = {{"backend", snapshot.backend},
             {"carrier", snapshot.carrier},
             {"hidden_size", snapshot.model.hidden_size},
             {"experts", snapshot.model.experts},
             {"top_k", snapshot.model.top_k},
             {"layer", layer.value}};
  closed_loop loop(
      source,
      {.layer = layer, .tokens = tokens, .seed = o.seed, .load = o.load, .deadline = line.timeout});
  const auto batches = measure_batches(loop, tier, o.warmup, o.calls);
  if (!batches) return tl::unexpected(batches.error());
  const auto echo = echo_times(source.shape(), settings, shape);
  if (!echo) return tl::unexpected(echo.error());
  const auto alone = compute_times(snapshot.model, snapshot.backend, settings, shape);
  if (!alone) return tl::unexpected(alone.error());

  const bool known = !tier.workers.empty();
  tier_cell cell{
      .workers = static_cast<std::uint32_t>(snapshot.workers.size()),
      .tokens = tokens,
      .calls = o.calls,
      .total = figures_by(*batches, [](const call_sample& c) { return c.total; }),
      .route = figures_by(*batches, [](const call_sample& c) { return c.parts.route; }),
      .pack = figures_by(*batches, [](const call_sample& c) { return c.parts.pack; }),
      .wait = figures_by(*batches, [](const call_sample& c) { return c.parts.wait; }),
      .sum = figures_by(*batches, [](const call_sample& c) { return c.parts.sum; }),
      .split = typical_split(*batches, known),
      .stages_known = known,
      .echo = figures_of(*echo),
      .bytes = static_cast<double>(tokens * (transport::row_bytes_of(source.shape()) +
                                             std::uint64_t{source.shape().return_stride}))};
  if (!alone->empty()) cell.compute_alone = figures_of(*alone);
  return cell;
}

std::string sentence(const std::vector<tier_cell>& cells, const ordered_json& problem,
                     const bench_options& o, double load) {
  const bool known = cells.front().stages_known;
  const bool several =
      std::any_of(cells.begin(), cells.end(), [](const tier_cell& c) { return c.workers > 1; });
  std::string text = fmt::format(
      "H {}, top-{} of {} experts, {} over {}; {} calls a row, load {}; {}. ",
      problem["hidden_size"].get<int>(), problem["top_k"].get<int>(), problem["experts"].get<int>(),
      problem["backend"].get<std::string>(), problem["carrier"].get<std::string>(), o.calls,
      load_name(o.load), load_sentence(load));
  text += known ? "Route has packing in it; rest: grouping by slot, returning, what no clock saw. "
                : "Route has packing in it; rest: all of the worker's and what no clock saw (queue "
                  "and compute need tiers of the bench's own: --workers). ";
  if (several)
    text +=
        "With several workers wire, queue and compute are the path of the one that answered "
        "last, its time divided as the stages of all were. ";
  text +=
      "The parts are means of the batch of calls whose mean is nearest to p50. Own share: the "
      "whole "
      "less compute";
  text += known ? "." : ", which was measured alone.";
  return text;
}

}  // namespace

expected<exit_code> run_bench_tier(const command_line& line, const config::settings& settings) {
  const bench_options& o = line.bench;
  if (const auto ok = check_demands(o.demands, k_tier_figures); !ok)
    return tl::unexpected(ok.error());
  const double load = load_average();
  std::vector<tier_cell> cells;
  ordered_json problem;
  const auto measure = [&](const measured_tier& tier) -> expected<void> {
    for (const std::uint32_t tokens : o.tokens) {
      auto cell = measure_cell(line, settings, tier, tokens, problem);
      if (!cell) return tl::unexpected(cell.error());
      cells.push_back(std::move(*cell));
    }
    return {};
  };
  if (o.workers.empty()) {
    if (const auto done = measure({line.address, {}}); !done) return tl::unexpected(done.error());
  }
  for (const std::uint32_t workers : o.workers) {
    const auto tier = embedded_tier::start(line, settings.model.path, workers);
    if (!tier) return tl::unexpected(tier.error());
    const auto done = measure({(*tier)->address(), (*tier)->workers()});
    if (!done) return tl::unexpected(done.error());
  }
  bench_report report{.document = bench_document("tier"),
                      .tables = {tier_table(cells)},
                      .below = sentence(cells, problem, o, load),
                      .figures = tier_figures(cells)};
  ordered_json& j = report.document;
  j["load_average"] = load;
  j["resolution"] = {{"backend", problem["backend"]}, {"carrier", problem["carrier"]}};
  j["problem"] = {{"hidden_size", problem["hidden_size"]},
                  {"experts", problem["experts"]},
                  {"top_k", problem["top_k"]},
                  {"layer", problem["layer"]},
                  {"load", load_name(o.load)},
                  {"seed", o.seed},
                  {"warmup", o.warmup},
                  {"repeat", o.calls}};
  // One cell stands at the top, where it always did.
  if (cells.size() == 1) {
    j["problem"].update({{"tokens", cells.front().tokens}, {"workers", cells.front().workers}});
    ordered_json only = tier_json(cells.front());
    only.erase("tokens");
    only.erase("workers");
    j.update(only);
  }
  j["cells"] = ordered_json::array();
  for (const tier_cell& cell : cells) j["cells"].push_back(tier_json(cell));
  return print_report(std::move(report), line.json, o.markdown, o.demands, k_tier_figures);
}

}  // namespace moetier::cli
