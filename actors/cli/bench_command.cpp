#include <cstdio>
#include <random>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/cli/bench_document.hpp"
#include "actors/cli/bench_load.hpp"
#include "actors/cli/bench_parts.hpp"
#include "actors/cli/commands.hpp"
#include "actors/cli/direct_session.hpp"
#include "actors/cli/latency.hpp"
#include "actors/cli/table.hpp"

namespace moetier::cli {
namespace {

using nlohmann::ordered_json;

struct tier_times {
  std::vector<std::uint64_t> total, route, pack, wait, sum;
};

// A closed loop of one caller: a step of one call, again and again.
expected<tier_times> call_often(client::source_session& source, layer_id layer,
                                const bench_shape& shape, const load_wish& wish) {
  const model_description& model = source.snapshot().model;
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> hidden(std::size_t{shape.tokens} * model.hidden_size);
  std::vector<float> logits(std::size_t{shape.tokens} * model.columns());
  for (float& x : hidden) x = normal(random);
  bench_load load(wish, source.snapshot().routing, model.columns(),
                  static_cast<std::uint32_t>(source.snapshot().workers.size()));
  std::vector<float> output(hidden.size());
  tier_times t;
  for (std::uint32_t call = 0; call < shape.warmup + shape.calls; ++call) {
    load.fill(shape.tokens, logits);
    if (auto begun = source.step_begin(false); !begun) return tl::unexpected(begun.error());
    const time_ns began = monotonic_now();
    auto done = source.submit({.layer = layer,
                               .tokens = shape.tokens,
                               .hidden = hidden.data(),
                               .hidden_type = dtype::f32,
                               .hidden_pitch = 4 * std::size_t{model.hidden_size},
                               .logits = logits.data(),
                               .logits_type = dtype::f32,
                               .logits_pitch = 4 * std::size_t{model.columns()}});
    if (done) {
      done = source.collect(0, {.output = output.data(),
                                .type = dtype::f32,
                                .pitch = 4 * std::size_t{model.hidden_size}});
    }
    const duration_ns took = monotonic_now() - began;
    if (!done) return tl::unexpected(done.error());
    if (auto ended = source.step_end(); !ended) return tl::unexpected(ended.error());
    if (call < shape.warmup) continue;
    const client::call_times& parts = source.last_times();
    t.total.push_back(took);
    t.route.push_back(parts.route);
    t.pack.push_back(parts.pack);
    t.wait.push_back(parts.wait);
    t.sum.push_back(parts.sum);
  }
  return t;
}

ordered_json json_of(const latency_figures& f) {
  return {{"min", f.min}, {"mean", f.mean}, {"p50", f.p50}, {"p90", f.p90},
          {"p99", f.p99}, {"p999", f.p999}, {"max", f.max}};
}

}  // namespace

expected<exit_code> run_bench_tier(const command_line& line, const config::settings& settings) {
  const bench_shape shape{line.bench.tokens, line.bench.warmup, line.bench.calls};
  auto session = direct_session::open(
      {.address = line.address, .tokens_max = shape.tokens, .limit = line.timeout}, settings);
  if (!session) return tl::unexpected(session.error());
  client::source_session& source = (*session)->source();
  const transport::routing_snapshot& snapshot = source.snapshot();
  layer_id layer(static_cast<std::uint16_t>(line.bench.layer));
  if (moe_index(snapshot.model, layer) < 0 && line.bench.layer == 0) {
    layer = snapshot.model.moe_layers.front();
  }
  const auto tier = call_often(source, layer, shape, line.bench.load);
  if (!tier) return tl::unexpected(tier.error());
  const auto echo = echo_times(source.shape(), settings, shape);
  if (!echo) return tl::unexpected(echo.error());
  const auto compute = compute_times(snapshot.model, snapshot.backend, settings, shape);
  if (!compute) return tl::unexpected(compute.error());

  std::vector<std::pair<const char*, latency_figures>> rows{
      {"round trip", figures_of(tier->total)}, {"  route", figures_of(tier->route)},
      {"  pack", figures_of(tier->pack)},      {"  wait", figures_of(tier->wait)},
      {"  sum", figures_of(tier->sum)},        {"bare echo", figures_of(*echo)}};
  const bool computed = !compute->empty();
  if (computed) rows.emplace_back("compute alone", figures_of(*compute));
  const double own = rows[0].second.p50 - (computed ? rows.back().second.p50 : 0);
  const double echoes = own / rows[5].second.p50;
  if (line.json) {
    ordered_json document = bench_document("tier");
    document.update({{"resolution", {{"backend", snapshot.backend}, {"carrier", snapshot.carrier}}},
                     {"problem",
                      {{"tokens", shape.tokens},
                       {"hidden_size", snapshot.model.hidden_size},
                       {"experts", snapshot.model.experts},
                       {"top_k", snapshot.model.top_k},
                       {"workers", snapshot.workers.size()},
                       {"layer", layer.value},
                       {"load", load_name(line.bench.load)},
                       {"repeat", shape.calls}}},
                     {"latency_us", json_of(rows[0].second)},
                     {"stages_us",
                      {{"route", json_of(rows[1].second)},
                       {"pack", json_of(rows[2].second)},
                       {"wait", json_of(rows[3].second)},
                       {"sum", json_of(rows[4].second)}}},
                     {"echo_us", json_of(rows[5].second)},
                     {"tokens_per_s", 1e6 * shape.tokens / rows[0].second.mean},
                     {"errors", 0}});
    if (computed)
      document.update({{"compute_us", json_of(rows.back().second)},
                       {"own_share_us", own},
                       {"own_share_echoes", echoes}});
    std::fputs((document.dump(1) + "\n").c_str(), stdout);
    return exit_code::done;
  }
  table t({"us", "min", "p50", "p99", "max"});
  for (const auto& [name, f] : rows) {
    t.add({name, fmt::format("{:.2f}", f.min), fmt::format("{:.2f}", f.p50),
           fmt::format("{:.2f}", f.p99), fmt::format("{:.2f}", f.max)});
  }
  std::fputs(t.text().c_str(), stdout);
  const std::string share =
      computed ? fmt::format("own share (round trip less compute, p50): {:.2f} us = {:.2f} echoes",
                             own, echoes)
               : fmt::format("{} computes on a GPU; --set worker.device=cuda:N measures it here",
                             snapshot.backend);
  std::fputs(fmt::format("{}; {} calls of {} token(s), {} worker(s)\n", share, shape.calls,
                         shape.tokens, snapshot.workers.size())
                 .c_str(),
             stdout);
  return exit_code::done;
}

}  // namespace moetier::cli
