#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "actors/cli/commands.hpp"
#include "actors/cli/output_text.hpp"
#include "actors/cli/plan_advice.hpp"
#include "actors/cli/plan_loads.hpp"
#include "actors/cli/plan_stats.hpp"
#include "actors/cli/plan_text.hpp"
#include "actors/config/quantity.hpp"
#include "eplb/assignment_file.hpp"
#include "schemas/file/input_file.hpp"
#include "schemas/model/config.hpp"

namespace moetier::cli {
namespace {

using eplb::model_plan;
using eplb::plan_draft;
using eplb::slot_layout;

constexpr std::size_t k_plan_bytes_max = std::size_t{64} << 20;

void print(const std::string& text) { std::fputs(text.c_str(), stdout); }

// A file's name may be no UTF-8.
std::string text_of(const nlohmann::ordered_json& document) {
  return document.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// What would be lost.
expected<void> check_files(const plan_options& o) {
  if (same_file(o.out, o.export_file))
    return fail(reason::config_invalid, "--export", o.export_file, "another file than --out's");
  for (const auto& [flag, file] : {std::pair("--out", &o.out), {"--export", &o.export_file}})
    if (same_file(*file, o.loads.counts) || same_file(*file, o.loads.trace))
      return fail(reason::config_invalid, flag, *file, "another file than the loads'");
  return {};
}

expected<std::optional<model_description>> model_of(const plan_options& o) {
  if (o.model.empty()) return std::optional<model_description>{};
  std::error_code none;
  const bool folder = std::filesystem::is_directory(o.model, none);
  const auto files =
      read_config(folder ? (std::filesystem::path(o.model) / "config.json").string() : o.model);
  if (!files) return tl::unexpected(files.error());
  return std::optional(*files);
}

expected<exit_code> run_advice(const command_line& line,
                               const std::optional<model_description>& model) {
  advise_options a = line.plan.advise;
  if (model) {
    if (a.layers == 0) a.layers = static_cast<std::uint32_t>(model->moe_layers.size());
    if (a.hidden_size == 0) a.hidden_size = model->hidden_size;
    if (a.top_k == 0) a.top_k = model->top_k;
  }
  if (!a.from_stats.empty()) {
    const auto times = times_of_tier(a.from_stats);
    if (!times) return tl::unexpected(times.error());
    if (a.experts_us == 0) a.experts_us = times->experts_us;
    if (a.leg_us == 0) a.leg_us = times->leg_us;
  }
  const auto advice = advise(a);
  if (!advice) return tl::unexpected(advice.error());
  if (!line.json) {
    print(advice_text(*advice));
    return exit_code::done;
  }
  nlohmann::ordered_json document{{"schema", "moetier.advice/1"},
                                  {"colocated", advice->colocated},
                                  {"experts_us", a.experts_us},
                                  {"leg_us", a.leg_us},
                                  {"micro_batches", advice->micro_batches},
                                  {"layer_us", advice->layer_us},
                                  {"layer_limit_us", advice->layer_limit_us},
                                  {"attention_per_worker", advice->ratio},
                                  {"attention_per_worker_network", advice->ratio_network}};
  if (advice->colocated) document["why"] = advice->why;
  print(text_of(document));
  return exit_code::done;
}

// The plan that --from names, of whichever form.
expected<std::optional<plan_draft>> plan_before(const plan_options& o, std::uint32_t experts) {
  if (o.from.empty()) return std::optional<plan_draft>{};
  const auto text = input_file::read_text(o.from, k_plan_bytes_max);
  if (!text) return tl::unexpected(text.error());
  if (const auto first = text->find_first_not_of(" \t\r\n");
      first == std::string::npos || (*text)[first] != '{') {
    return fail(reason::file_malformed, o.from,
                "it is no plan file, which is one JSON object; loads go to --counts or --trace");
  }
  if (eplb::is_assignment_file(*text)) {
    if (o.workers == 0)
      return fail(reason::config_invalid, "--workers", "not given",
                  "a number: assignments do not say how many workers there are");
    auto d = eplb::read_assignment_file(*text, o.from, o.workers, experts);
    if (!d) return tl::unexpected(d.error());
    return std::optional(std::move(*d));
  }
  auto file = eplb::read_plan_file(*text, o.from);
  if (!file) return tl::unexpected(file.error());
  return std::optional(std::move(file->draft));
}

// Loads as the model numbers its layers.
expected<void> fit_to_model(eplb::model_loads& loads, const model_description& m,
                            const std::string& file) {
  if (loads.layers == m.moe_layers) return {};
  bool counted = loads.layers.size() == m.moe_layers.size();
  for (std::size_t i = 0; counted && i < loads.layers.size(); ++i)
    counted = loads.layers[i].value == i;  // MoE layers were counted without the dense ones
  if (!counted) {
    return fail(reason::file_malformed, file,
                fmt::format("it has {} layers from number {} on; {} has {} MoE layers from {} on",
                            loads.layers.size(), loads.layers.front().value, m.model_type,
                            m.moe_layers.size(), m.moe_layers.front().value));
  }
  loads.layers = m.moe_layers;
  return {};
}

expected<slot_layout> layout_of(const plan_options& o, std::uint32_t experts) {
  if (!o.slots_per_worker.empty()) {
    if (o.slots != 0)
      return fail(reason::config_invalid, "--slots", o.slots, "not beside --slots-per-worker");
    if (o.workers != 0 && o.workers != o.slots_per_worker.size()) {
      return fail(reason::config_invalid, "--slots-per-worker",
                  fmt::format("{} numbers", o.slots_per_worker.size()),
                  fmt::format("{}, one a worker", o.workers));
    }
    return slot_layout::make(o.slots_per_worker);
  }
  if (o.workers == 0)
    return fail(reason::config_invalid, "--workers", "not given", "how many workers to plan for");
  const std::uint32_t enough = (experts + o.workers - 1) / o.workers * o.workers + o.workers;
  const std::uint32_t slots = o.slots != 0 ? o.slots : enough;
  if (slots < experts || slots < o.workers) {
    return fail(reason::partition_invalid, experts, o.workers,
                fmt::format("--slots {} over all workers are too few; at least {} are needed, {} "
                            "give every worker the same number and one to spare",
                            slots, std::max(experts, o.workers), enough));
  }
  return slot_layout::even(o.workers, slots);
}

expected<eplb::repair_budget> budget_of(const plan_options& o) {
  eplb::repair_budget budget;
  if (o.budget.empty()) return budget;
  if (const auto copies = config::parse_count(o.budget); copies && *copies <= 32767) {
    budget.copies_per_layer = static_cast<std::uint32_t>(*copies);
    return budget;
  }
  const auto bytes = config::parse_size(o.budget);
  if (!bytes)
    return fail(reason::config_invalid, "--budget", o.budget,
                "copies per layer as a number, or bytes in all as 10GiB");
  if (o.expert_bytes == 0)
    return fail(reason::config_invalid, "--expert-size", "not given",
                "a size, as the budget is in bytes");
  budget.copies_total = *bytes / o.expert_bytes;
  return budget;
}

// The same slots as the plan before, where they were told again.
expected<void> check_same_slots(const plan_options& o, const plan_draft& before) {
  if (o.slots == 0 && o.slots_per_worker.empty() &&
      (o.workers == 0 || o.workers == before.slots_per_worker.size()))
    return {};
  const auto asked = layout_of(o, before.experts);
  if (!asked) return tl::unexpected(asked.error());
  const auto has = slot_layout::make(before.slots_per_worker);
  if (*asked == *has) return {};
  return fail(
      reason::placement_invalid,
      fmt::format("{} is for {} worker(s) with {} slots per layer, not for {} with {}{}; leave "
                  "--from out to plan anew",
                  o.from, has->workers(), has->slots(), asked->workers(), asked->slots(),
                  has->workers() == asked->workers() && has->slots() == asked->slots()
                      ? " in other numbers"
                      : ""));
}

eplb::migration moves_between(const plan_draft& before, const plan_draft& after,
                              const plan_options& o) {
  const slot_layout layout = *slot_layout::make(after.slots_per_worker);
  std::vector<std::vector<std::int32_t>> from, to;
  for (const auto& l : before.layers) from.push_back(l.slots);
  for (const auto& l : after.layers) to.push_back(l.slots);
  std::vector<std::uint32_t> node(layout.workers());
  for (std::uint32_t g = 0; g < layout.workers(); ++g) node[g] = g * o.nodes / layout.workers();
  return eplb::plan_migration(
      {.layout = &layout, .from = from, .to = to, .node = node, .blob_bytes = o.expert_bytes});
}

// Flags that would do nothing in this call.
expected<void> check_used(const plan_options& o) {
  if (o.from.empty() || (o.loads.counts.empty() && o.loads.trace.empty())) {
    constexpr const char* allowed = "only with --from and loads";
    if (!o.budget.empty()) return fail(reason::config_invalid, "--budget", o.budget, allowed);
    if (o.expert_bytes != 0) {
      return fail(reason::config_invalid, "--expert-size", config::size_text(o.expert_bytes),
                  allowed);
    }
  }
  const std::pair<const char*, const std::string&> plans[] = {{"--counts", o.loads.counts},
                                                              {"--trace", o.loads.trace},
                                                              {"--from", o.from},
                                                              {"--out", o.out},
                                                              {"--export", o.export_file}};
  for (const auto& [flag, value] : plans) {
    if (o.advise.asked && !value.empty())
      return fail(reason::config_invalid, flag, value, "not beside --advise, which plans nothing");
  }
  return {};
}

expected<model_plan> make_plan(const plan_options& o, const std::optional<read_loads>& loads,
                               const std::optional<plan_draft>& before) {
  if (!before) {
    const auto layout = layout_of(o, loads->loads.experts);
    if (!layout) return tl::unexpected(layout.error());
    return eplb::plan_cold(loads->loads, *layout, o.min_replicas);
  }
  if (auto same = check_same_slots(o, *before); !same) return tl::unexpected(same.error());
  if (!loads) return model_plan{*before, {}, {}};
  const auto budget = budget_of(o);
  if (!budget) return tl::unexpected(budget.error());
  return eplb::plan_by_repair(loads->loads, *before, *budget);
}

expected<void> write_files(const plan_options& o, const model_plan& plan, std::uint64_t fingerprint,
                           plan_report& report) {
  if (!o.out.empty()) {
    const auto written =
        write_text(o.out, eplb::plan_file_text({plan.draft, fingerprint, plan.moves}) + "\n");
    if (!written) return written;
  }
  if (o.export_file.empty()) return {};
  const auto text = eplb::write_assignment_file(plan.draft);
  if (!text) return tl::unexpected(text.error());
  report.shares_lost = text->shares_lost;
  return write_text(o.export_file, text->text);
}

}  // namespace

expected<exit_code> run_plan(const command_line& line) {
  const plan_options& o = line.plan;
  if (auto used = check_used(o); !used) return tl::unexpected(used.error());
  const auto model = model_of(o);
  if (!model) return tl::unexpected(model.error());
  if (o.advise.asked) return run_advice(line, *model);
  if (auto apart = check_files(o); !apart) return tl::unexpected(apart.error());

  const std::uint32_t experts = *model ? (*model)->experts : 0;
  const auto before = plan_before(o, o.loads.experts != 0 ? o.loads.experts : experts);
  if (!before) return tl::unexpected(before.error());
  std::optional<read_loads> loads;
  if (!o.loads.counts.empty() || !o.loads.trace.empty()) {
    load_source source = o.loads;
    if (source.experts == 0) source.experts = experts;
    if (source.experts == 0 && !source.trace.empty() && *before)
      source.experts = (*before)->experts;
    auto read = read_plan_loads(source);
    if (!read) return tl::unexpected(read.error());
    loads = std::move(*read);
    if (*model) {
      if (auto fits = fit_to_model(loads->loads, **model,
                                   source.trace.empty() ? source.counts : source.trace);
          !fits)
        return tl::unexpected(fits.error());
    }
  }
  if (!loads && !*before)
    return fail(reason::config_invalid, "--counts", "not given",
                "a file of loads; or --trace, or --from to convert a plan");

  const auto plan = make_plan(o, loads, *before);
  if (!plan) return tl::unexpected(plan.error());
  const std::size_t workers = plan->draft.slots_per_worker.size();
  if (o.nodes > workers)
    return fail(reason::config_invalid, "--nodes", o.nodes,
                fmt::format("1 to {}, the number of workers", workers));
  const auto valid = eplb::check_plan(
      plan->draft, {.slots_per_worker = plan->draft.slots_per_worker, .uneven_allowed = true});
  if (!valid) return tl::unexpected(valid.error());

  plan_report report{.loads_told = loads ? loads->told : "",
                     .plan = &*plan,
                     .repaired = before->has_value() && loads.has_value(),
                     .moves = {},
                     .unmet = {},
                     .expert_bytes = o.expert_bytes};
  if (report.repaired) report.moves = moves_between(**before, plan->draft, o);
  std::vector<std::uint32_t> node;
  for (std::size_t g = 0; o.nodes > 1 && g < workers; ++g)
    node.push_back(static_cast<std::uint32_t>(g * o.nodes / workers));
  report.unmet = eplb::unmet(plan->draft, {.min_replicas = o.min_replicas, .node_of_worker = node});
  const auto written = write_files(o, *plan, *model ? (*model)->fingerprint : 0, report);
  if (!written) return tl::unexpected(written.error());
  print(line.json ? text_of(plan_document(report, o)) : plan_text(report, o));
  return exit_code::done;
}

}  // namespace moetier::cli
