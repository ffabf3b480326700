#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include <fmt/core.h>

#include "actors/build_info.hpp"
#include "actors/cli/commands.hpp"
#include "actors/cli/resolve_text.hpp"
#include "actors/cli/tier_address.hpp"
#include "actors/config/device_name.hpp"
#include "actors/process/probe_environment.hpp"
#include "actors/roles/served_model.hpp"
#include "coordinator/resolution/resolve.hpp"
#include "kernels/routing/route.hpp"
#include "schemas/file/input_file.hpp"
#include "schemas/model/config.hpp"
#include "schemas/resolution/documents.hpp"
#include "schemas/resolution/limits.hpp"
#include "transport/client/link/tier_link.hpp"
#include "workers/device/worker_device.hpp"

namespace moetier::cli {
namespace {

using resolution::environment;

void print(const std::string& text) { std::fputs(text.c_str(), stdout); }

expected<environment> of_this_machine(const config::settings& s) {
  std::unique_ptr<workers::worker_device> device;
  if (const auto wish = config::parse_device(s.worker.device); wish && wish->cuda) {
    auto opened = workers::open_device({.ordinal = wish->ordinal_or_first()});
    if (!opened) return tl::unexpected(opened.error());
    device = std::move(*opened);
  }
  return probe_environment({.settings = s,
                            .build = this_build(),
                            .carriers = probe_carriers(s),
                            .device = device ? &device->facts() : nullptr});
}

expected<std::vector<environment>> environments_of(const resolve_options& o,
                                                   const config::settings& s) {
  if (o.environments.empty()) {
    auto here = of_this_machine(s);
    if (!here) return tl::unexpected(here.error());
    return std::vector<environment>{std::move(*here)};
  }
  std::vector<environment> all;
  for (const std::string& file : o.environments) {
    const auto text = input_file::read_text(file, resolution::k_document_bytes_max);
    if (!text) return tl::unexpected(text.error());
    auto read = resolution::read_environment(*text, file);
    if (!read) return tl::unexpected(read.error());
    all.push_back(std::move(*read));
  }
  return all;
}

struct wished_model {
  model_description served;
  std::optional<quant_kind> quantise;
};

// By the same functions as a coordinator's start.
expected<wished_model> model_to_serve(const std::string& path, const config::settings& s) {
  std::error_code none;
  const bool folder = std::filesystem::is_directory(path, none);
  const auto files =
      read_config(folder ? (std::filesystem::path(path) / "config.json").string() : path);
  if (!files) return tl::unexpected(files.error());
  auto served = roles::served_model(s, *files);
  if (!served) return tl::unexpected(served.error());
  if (auto fine = kernels::check_routing(
          {.rule = served->routing, .experts = served->experts, .top_k = served->top_k});
      !fine)
    return tl::unexpected(fine.error());
  const auto quantise = roles::wished_format(s, *files);
  if (!quantise) return tl::unexpected(quantise.error());
  return wished_model{std::move(*served), *quantise};
}

// What a running tier has resolved; the model's name is its own matter.
expected<exit_code> run_live(const command_line& line) {
  auto link = reach(line, line.timeout);
  if (!link) return tl::unexpected(link.error());
  const auto text = (*link)->document(client::admin_document::resolution, line.timeout);
  if (!text) return tl::unexpected(text.error());
  const auto report = resolution::read_report(*text, line.address);
  if (!report) return tl::unexpected(report.error());
  const auto snapshot = (*link)->snapshot(line.timeout);
  print(line.json ? resolution::readable_json(*report)
                  : resolve_text(*report, snapshot ? (*snapshot)->model.model_type : line.address));
  return report->selected == resolution::selected_by::failed ? exit_code::refused : exit_code::done;
}

}  // namespace

expected<exit_code> run_resolve(const command_line& line, const config::settings& s) {
  const resolve_options& o = line.resolve;
  if (o.live) return run_live(line);
  if (o.capture) {
    const auto here = of_this_machine(s);
    if (!here) return tl::unexpected(here.error());
    print(resolution::document_of(*here));
    return exit_code::done;
  }
  if (o.model.empty())
    return fail(reason::config_invalid, "--model", "not given", "a directory or a config.json");
  const auto model = model_to_serve(o.model, s);
  if (!model) return tl::unexpected(model.error());
  auto environments = environments_of(o, s);
  if (!environments) return tl::unexpected(environments.error());
  const auto request = resolve_request(o,
                                       {.backend = s.backend.force,
                                        .carrier = s.transport.carrier,
                                        .return_mode = s.moe.return_mode,
                                        .tokens = s.session.max_tokens,
                                        .workers = s.coordinator.workers,
                                        .slots = s.worker.slots,
                                        .allow_degradation = s.backend.allow_degradation,
                                        .quantise = model->quantise,
                                        .lora = s.moe.lora == "on"},
                                       model->served, std::move(*environments));
  if (!request) return tl::unexpected(request.error());
  const auto outcome = coordinator::weigh(*request);
  if (!outcome) return tl::unexpected(outcome.error());
  print(line.json ? resolution::readable_json(outcome->report)
                  : resolve_text(outcome->report, model->served.model_type));
  if (!outcome->refusal) return exit_code::done;
  // The report is the document; the sentence goes beside it.
  std::fflush(stdout);
  std::fputs(fmt::format("moetier: {}\n", outcome->refusal->text).c_str(), stderr);
  return exit_code_of(*outcome->refusal);
}

}  // namespace moetier::cli
