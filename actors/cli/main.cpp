// `moetier`, the one binary: parses, loads the configuration, builds what the command needs and
// turns its end into an exit code. Everything that a process owns is made below main.

#include <cstdio>
#include <exception>
#include <variant>
#include <vector>

#include <fmt/core.h>
#include <unistd.h>

#include "actors/cli/command_line.hpp"
#include "actors/cli/commands.hpp"
#include "actors/cli/error_document.hpp"
#include "actors/config/endpoint.hpp"
#include "actors/config/input_error.hpp"
#include "actors/config/key_table.hpp"
#include "actors/config/loader.hpp"
#include "actors/config/up_settings.hpp"
#include "actors/log/event_log.hpp"
#include "actors/process/stop_signal.hpp"
#include "actors/roles/coordinator_role.hpp"
#include "actors/roles/worker_role.hpp"
#include "actors/up/supervisor.hpp"
#include "transport/tls/failure_containment.hpp"
#include "transport/tls/process_policy.hpp"

extern char** environ;

namespace moetier::cli {
namespace {

void put(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

int code(exit_code c) { return static_cast<int>(c); }

int complain(const error& e, exit_code c, bool json) {
  if (json) put(error_document(e));
  std::fputs(fmt::format("moetier: {}\n", e.text).c_str(), stderr);
  return code(c);
}

expected<config::loaded> load_settings(const command_line& line) {
  std::vector<config::layer> layers;
  if (!line.config_file.empty()) {
    auto file = config::read_yaml_file(line.config_file);
    if (!file) return tl::unexpected(file.error());
    layers.push_back(std::move(*file));
  }
  std::vector<std::string> variables;
  for (char** v = environ; *v != nullptr; ++v) variables.emplace_back(*v);
  auto environment = config::read_environment(variables);
  if (!environment) return tl::unexpected(environment.error());
  layers.push_back(std::move(*environment));
  layers.push_back(line.flags);
  if (line.quiet) layers.back().push_back({"log.level", "error", "flag --quiet"});
  return config::load(layers);
}

// Flags that the children of `up` take over as they are; all others `up` sets itself.
std::vector<std::string> shared_arguments(const config::layer& flags) {
  std::vector<std::string> arguments;
  for (const config::entry& e : flags) {
    const bool own = e.key.starts_with("coordinator.") || e.key == "model.path" ||
                     e.key == "http.listen" || e.key == "log.level" || e.key == "worker.name" ||
                     e.key == "worker.coordinator" || e.key == "worker.device";
    if (!own) arguments.insert(arguments.end(), {"--set", e.key + "=" + e.value});
  }
  return arguments;
}

std::string ready_text(const up::up_state& s, bool json) {
  std::string workers;
  for (const roles::listening& w : s.workers) {
    workers += json ? fmt::format("{}{}", workers.empty() ? "" : ",", roles::to_line(w))
                    : fmt::format("  {} http {} pid {}", w.name, w.http, w.pid);
  }
  if (json) {
    return fmt::format(
        "{{\"schema\":\"moetier.ready/1\",\"address\":\"{}\",\"pid\":{},\"coordinator\":{},"
        "\"workers\":[{}]}}\n",
        s.coordinator.rpc, ::getpid(), roles::to_line(s.coordinator), workers);
  }
  const std::string& admin = s.coordinator.admin;
  return fmt::format("ready  rpc {}{}  control {}  http {}  pid {}  coordinator pid {}{}\n",
                     s.coordinator.rpc, admin.empty() ? "" : "  admin unix:" + admin,
                     s.coordinator.control, s.coordinator.http, ::getpid(), s.coordinator.pid,
                     workers);
}

const std::string& origin_of(const config::loaded& l, std::string_view key) {
  return l.origins[static_cast<std::size_t>(config::find_key(key) - config::key_table().data())];
}

int run_tier(const command_line& line, const config::up_settings& settings, event_log& log,
             stop_signal& stop) {
  bool ready = false;
  const auto ended = up::run_up(
      settings, {.config_file = line.config_file, .shared_arguments = shared_arguments(line.flags)},
      log, stop, [&](const up::up_state& state) {
        ready = true;
        put(ready_text(state, line.json));
      });
  if (!ended) return complain(ended.error(), exit_code_of(ended.error()), line.json);
  // What a child said of its end is on standard error.
  if (*ended != 0 && !ready && line.json) {
    put(error_document(
        make_error(reason::not_ready, fmt::format("a process ended with {}", *ended))));
  }
  return *ended;
}

// A worker's own settings: an http.listen that workers share is spread by their numbers; one that
// was given to this process alone stays.
config::loaded settings_of(const command_line& line, const config::loaded& loaded) {
  config::loaded own = loaded;
  const bool shared = !origin_of(loaded, "http.listen").starts_with("flag");
  if (line.what == command::worker && shared) {
    config::settings& s = own.values;
    s.http.listen = config::endpoint_text(
        config::numbered(*config::parse_endpoint(s.http.listen), s.worker.name));
  }
  return own;
}

int serve(const command_line& line, const config::loaded& loaded) {
  const config::loaded own = settings_of(line, loaded);
  const config::settings& s = own.values;
  const std::string component = line.what == command::up            ? "up"
                                : line.what == command::coordinator ? "coordinator"
                                                                    : "worker";
  event_log log(component, log_level_from(s.log.level), ::isatty(STDERR_FILENO) == 0,
                line.what == command::worker ? s.worker.name : std::string());
  stop_signal stop(log);  // before any thread: all inherit its mask
  if (!s.security.control.cert.empty()) {
    tls::contain_failures();
    if (!tls::demand_tls_1_3()) {
      return complain(make_error(reason::internal_error, "OpenSSL takes no demand for TLS 1.3"),
                      exit_code::internal, line.json);
    }
  }
  bool told = false;
  const auto tell = [&told](const roles::listening& l) {
    told = true;
    put(roles::to_line(l) + "\n");
  };
  if (line.what == command::up) return run_tier(line, config::up_settings_of(loaded), log, stop);
  const auto ended = line.what == command::coordinator
                         ? roles::run_coordinator(own, log, stop, tell)
                         : roles::run_worker(own, log, stop, tell);
  if (ended) return code(exit_code::done);
  log.error("failed", {{"reason", reason_name(ended.error().why)}, {"why", ended.error().text}});
  if (line.json && !told) put(error_document(ended.error()));
  return code(exit_code_of(ended.error()));
}

// A document that standard output did not take, as on a full disk, was not written.
int written(const command_line& line, int ended) {
  if (ended != 0 || line.watch.on || (std::fflush(stdout) == 0 && std::ferror(stdout) == 0)) {
    return ended;
  }
  const error lost = make_error(reason::file_unwritable, "standard output", "it took not all");
  return complain(lost, exit_code_of(lost), false);
}

int ask(const command_line& line, const config::loaded& loaded) {
  const config::settings& settings = loaded.values;
  const auto ended = [&]() -> expected<exit_code> {
    switch (line.what) {
      case command::status: return run_status(line);
      case command::placement_show: return run_placement_show(line);
      case command::placement_heatmap: return run_heatmap(line);
      case command::log_level: return run_log_level(line);
      case command::forward: return run_forward(line, settings);
      case command::bench_tier: return run_bench_tier(line, settings);
      case command::bench_sessions: return run_bench_sessions(line, settings);
      case command::bench_wire: return run_bench_wire(line, settings);
      case command::doctor: return run_doctor(line, loaded);
      case command::resolve: return run_resolve(line, settings);
      case command::plan: return run_plan(line);
      case command::bench_plan: return run_bench_plan(line);
      case command::bench_kernels: return run_bench_kernels(line);
      case command::adapters_list:
      case command::adapters_load:
      case command::adapters_drop: return run_adapters(line);
      default: return fail(reason::internal_error, "no such command");
    }
  }();
  if (ended) return written(line, code(*ended));
  // Who asks nobody can exceed a limit by a file only.
  const bool offline = line.what == command::plan || line.what == command::bench_plan ||
                       (line.what == command::resolve && !line.resolve.live);
  const error why = offline ? config::of_input_file(ended.error()) : ended.error();
  return complain(why, exit_code_of(why), line.json);
}

int run(int argc, const char* const* argv) {
  const auto parsed = parse_command_line(argc, argv);
  if (const auto* c = std::get_if<exit_code>(&parsed)) return code(*c);
  command_line line = std::get<command_line>(parsed);
  const auto loaded = load_settings(line);
  // Whatever is wrong with the configuration, a file that lacks included: 2.
  if (!loaded) return complain(loaded.error(), exit_code::usage, line.json);
  line.tls = loaded->values.security.rpc;
  if (line.print_config) {
    const config::loaded shown =
        line.what == command::up ? config::up_settings_of(*loaded).tier : *loaded;
    put(line.json ? print_json(shown) : print_yaml(shown));
    return written(line, code(exit_code::done));
  }
  const bool serves =
      line.what == command::up || line.what == command::coordinator || line.what == command::worker;
  return serves ? serve(line, *loaded) : ask(line, *loaded);
}

}  // namespace
}  // namespace moetier::cli

int main(int argc, char** argv) {
  try {
    return moetier::cli::run(argc, argv);
  } catch (const std::exception& e) {
    using namespace moetier;
    return cli::complain(make_error(reason::internal_error, e.what()), cli::exit_code::internal,
                         cli::wants_json(argc, argv));
  }
}
