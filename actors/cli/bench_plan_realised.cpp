#include <algorithm>

#include <fmt/core.h>

#include "actors/cli/bench_plan.hpp"
#include "actors/cli/bench_plan_loads.hpp"
#include "actors/cli/plan_replay.hpp"
#include "eplb/balance/balance.hpp"

namespace moetier::cli {
namespace {

constexpr bench_shape_of_plan k_shapes[] = {
    {256, 288, 32}, {256, 264, 8}, {256, 320, 64}, {128, 144, 8}};
constexpr bench_shape_of_plan k_recorded_shape{32, 40, 4};
constexpr double k_layers_of_a_model = 61;

// Windows of one layer, to be asked one after another.
template <class Next>
void replay_layer(std::uint32_t layer, std::uint32_t windows, Next next, plan_replay& replay,
                  std::vector<std::vector<replayed_window>>& into) {
  replay.next(next());
  for (std::uint32_t w = 0; w < windows; ++w) into[layer].push_back(*replay.next(next()));
}

void summarise(const std::vector<std::vector<replayed_window>>& layers, realised_row& row,
               realised_story& story) {
  const std::size_t windows = layers[0].size();
  story.trace = row.trace;
  story.shape = row.shape;
  story.windows.resize(windows);
  row.layers = static_cast<std::uint32_t>(layers.size());
  row.windows = static_cast<std::uint32_t>(windows);
  eplb::balance_summary greedy(layers.size());
  eplb::balance_summary ours(layers.size());
  const double all = static_cast<double>(layers.size() * windows);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    for (std::size_t w = 0; w < windows; ++w) {
      const replayed_window& r = layers[l][w];
      greedy.add(l, r.greedy_even);
      ours.add(l, r.ours_ring);
      row.greedy_split += r.greedy_split / all;
      row.ours_fresh += r.ours_fresh / all;
      row.ours_split += r.ours_split / all;
      row.greedy_copies += r.greedy_copies / all;
      row.ours_copies += r.ours_copies / all;
      row.windows_without_move += (r.ours_copies == 0 ? 1 : 0) / all;
      row.drift += r.drift / all;
      row.ours_planned_percent += r.planned_percent / all;
      row.warm_61_ms += r.warm_ns / all * k_layers_of_a_model / 1e6;
      realised_window& point = story.windows[w];
      const double share = 1 / static_cast<double>(layers.size());
      point.window = static_cast<std::uint32_t>(w);
      point.greedy_even += r.greedy_even * share;
      point.ours_ring += r.ours_ring * share;
      point.ours_split += r.ours_split * share;
      point.greedy_copies += r.greedy_copies * share;
      point.ours_copies += r.ours_copies * share;
    }
  }
  row.greedy_even = greedy.mean();
  row.greedy_even_worst = greedy.worst();
  row.ours_ring = ours.mean();
  row.ours_ring_worst = ours.worst();
  for (const replayed_window& r : layers[0]) {
    story.worker_load.push_back(r.worker_load);
    story.without_plan.push_back(r.without_plan);
  }
}

void add(const std::vector<std::vector<replayed_window>>& layers, const std::string& trace,
         const bench_shape_of_plan& shape, realised_figures& into) {
  realised_row row;
  realised_story story;
  row.trace = trace;
  row.shape = shape_name(shape);
  summarise(layers, row, story);
  into.rows.push_back(std::move(row));
  into.stories.push_back(std::move(story));
}

}  // namespace

expected<realised_figures> bench_realised(const plan_bench_options& o) {
  realised_figures out;
  if (!o.domains.empty()) {
    const auto domains = read_domains(o.domains);
    if (!domains) return tl::unexpected(domains.error());
    for (const bench_shape_of_plan& shape : k_shapes) {
      const std::size_t recorded = wide_layers(*domains, shape.experts);
      if (recorded == 0) continue;
      for (const drift_kind kind : k_drift_kinds) {
        std::vector<std::vector<replayed_window>> layers(o.layers);
        for (std::uint32_t l = 0; l < o.layers; ++l) {
          // More layers than were recorded: the same ones again, drifting another way.
          drifting_layer trace(wide_layer(*domains, shape.experts, l % recorded), kind,
                               o.seed * 1000 + l);
          plan_replay replay(shape.experts, *eplb::slot_layout::even(shape.workers, shape.slots));
          replay_layer(
              l, o.windows, [&] { return trace.next(); }, replay, layers);
        }
        add(layers, drift_name(kind), shape, out);
      }
    }
    if (out.rows.empty()) return fits_no_shape(*domains, o.domains);
  }
  if (!o.trace.empty()) {
    const auto windows = recorded_windows(o.trace, o.trace_experts);
    if (!windows) return tl::unexpected(windows.error());
    bench_shape_of_plan shape = k_recorded_shape;
    shape.experts = o.trace_experts;
    shape.slots = o.trace_experts + 2 * shape.workers;
    const auto layout = eplb::slot_layout::even(shape.workers, shape.slots);
    if (!layout) return tl::unexpected(layout.error());
    const auto too_short = [](const auto& own) { return own.size() < 2; };
    if (windows->empty() || std::any_of(windows->begin(), windows->end(), too_short))
      return fail(reason::file_malformed, o.trace, "it is too short for two windows");
    std::vector<std::vector<replayed_window>> layers(windows->size());
    for (std::uint32_t l = 0; l < windows->size(); ++l) {
      const auto& own = (*windows)[l];
      std::size_t at = 0;
      plan_replay replay(shape.experts, *layout);
      replay_layer(
          l, static_cast<std::uint32_t>(own.size() - 1), [&] { return own[at++]; }, replay, layers);
    }
    add(layers, "recorded ids", shape, out);
  }
  return out;
}

}  // namespace moetier::cli
