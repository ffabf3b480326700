#include "actors/cli/command_line.hpp"

#include <functional>
#include <iostream>
#include <memory>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "actors/build_info.hpp"
#include "actors/cli/bench_flags.hpp"
#include "actors/cli/error_document.hpp"
#include "actors/cli/help_formatter.hpp"
#include "actors/cli/plan_flags.hpp"
#include "actors/config/endpoint.hpp"
#include "actors/config/key_table.hpp"
#include "actors/config/quantity.hpp"
#include "actors/http/pages.hpp"

namespace moetier::cli {
namespace {

using config::k_coordinator;
using config::k_doctor;
using config::k_up;
using config::k_worker;

std::string version_text() {
  const build_info& b = this_build();
  return fmt::format("moetier {} ({}), {}, CAF {}, Cap'n Proto {}, UCX {}", b.version, b.commit,
                     b.compiler, b.caf, b.capnp, b.ucx);
}

std::string wrong_address(const std::string& text) {
  if (text.starts_with("unix:") && text.size() > 5) return "";
  const auto at = config::parse_endpoint(text);
  return at && at->port != 0 ? "" : "needs HOST:PORT or unix:PATH";
}

std::string wrong_peer(const std::string& text) {
  const auto at = config::parse_endpoint(text);
  return at && at->port != 0 ? "" : "needs HOST:PORT";
}

std::string wrong_listener(const std::string& text) {
  return config::parse_endpoint(text) ? "" : "needs HOST:PORT; port 0 is a free one";
}

// What is wrong with a text that is no duration, or none of any length.
std::string wrong_duration(const std::string& text) {
  const bool number = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return fmt::format("{} {}; e.g. 10s, 500ms", text.empty() ? "''" : text,
                     number ? "has no unit" : "is no duration");
}

class builder final {
 public:
  explicit builder(command_line& into) : into_(into) {
    app_.require_subcommand(1);
    app_.fallthrough();
    app_.formatter(std::make_shared<help_formatter>());  // the subcommands take it over
    app_.set_version_flag("--version", version_text());
    add_globals();
    add_serving();
    add_asking();
  }

  std::variant<command_line, exit_code> parse(int argc, const char* const* argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::CallForVersion& e) {
      if (!wants_json(argc, argv)) {
        app_.exit(e, std::cout, std::cerr);
      } else {
        std::cout << http::version_page().body << std::endl;
      }
      return exit_code::done;
    } catch (const CLI::RequiredError& e) {
      // The library misses a command where a wrong one stands.
      const std::vector<std::string> left = app_.remaining(true);
      if (left.empty()) return tell(e, argc, argv);
      return tell(CLI::ExtrasError(fmt::format("no command is called {}", left.front()),
                                   CLI::ExitCodes::ExtrasError),
                  argc, argv);
    } catch (const CLI::ParseError& e) {
      return tell(e, argc, argv);
    }
    return into_;
  }

 private:
  exit_code tell(const CLI::ParseError& e, int argc, const char* const* argv) const {
    if (e.get_exit_code() != 0 && wants_json(argc, argv)) {
      std::cout << error_document({status::invalid, reason::config_invalid, e.what()})
                << std::flush;
    }
    return app_.exit(e, std::cout, std::cerr) == 0 ? exit_code::done : exit_code::usage;
  }

  void add_globals() {
    app_.add_option("--config", into_.config_file, "a YAML file of settings");
    app_.add_option("--address", into_.address,
                    "the coordinator's RPC address, or unix:PATH of its administration")
        ->check(wrong_address)
        ->capture_default_str();
    add_key(app_, "--tls-cert", "security.rpc.cert", "own certificate on the RPC link (PEM)");
    add_key(app_, "--tls-key", "security.rpc.key", "its key (PEM, mode 0600)");
    add_key(app_, "--tls-ca", "security.rpc.ca", "the RPC link's certificate authority (PEM)");
    app_.add_option_function<std::string>(
            "-o,--output", [this](const std::string& form) { into_.json = form == "json"; },
            "table (default) or json, one document with a `schema` field")
        ->check(CLI::IsMember({"table", "json"}));
    app_.add_option_function<std::string>(
        "--timeout",
        [this](const std::string& text) {
          const auto d = config::parse_duration(text);
          if (!d || *d == 0) throw CLI::ValidationError("--timeout", wrong_duration(text));
          into_.timeout = *d;
        },
        "how long the whole command may take, e.g. 10s (default), 500ms");
    app_.add_option_function<std::vector<std::string>>(
            "--set",
            [this](const std::vector<std::string>& pairs) {
              for (const std::string& pair : pairs) set_pair(pair);
            },
            "KEY=VALUE of any setting; may be repeated")
        ->allow_extra_args(false);
    app_.add_flag("--print-config", into_.print_config,
                  "show all settings and where they come from");
    app_.add_flag("--quiet", into_.quiet, "no logs below errors");
  }

  void set_pair(const std::string& pair) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos) throw CLI::ValidationError("--set", "needs KEY=VALUE");
    into_.flags.push_back({pair.substr(0, equals), pair.substr(equals + 1), "flag --set"});
  }

  CLI::App* add(CLI::App& parent, const char* name, const char* text, command what) {
    CLI::App* sub = parent.add_subcommand(name, text);
    sub->fallthrough();
    sub->callback([this, what] { into_.what = what; });
    return sub;
  }

  static std::string default_text(const config::key_row& row) {
    const std::string value = row.show(config::settings());
    return value.empty() ? "; not set" : "; default " + value;
  }

  void add_keys(CLI::App& sub, unsigned mask) {
    for (const config::key_row& row : config::key_table()) {
      if (row.flag.empty() || (row.commands & mask) == 0) continue;
      add_key(sub, std::string(row.flag), std::string(row.key),
              fmt::format("{} ({}{})", row.help, row.allowed, default_text(row)));
    }
  }

  void add_key(CLI::App& sub, const std::string& flag, const std::string& key,
               const std::string& text) {
    sub.add_option_function<std::string>(
        flag,
        [this, flag, key](const std::string& value) {
          into_.flags.push_back({key, value, "flag " + flag});
        },
        text);
  }

  void add_serving() {
    CLI::App* up = add(app_, "up", "a whole tier on this machine, until a signal", command::up);
    add_keys(*up, k_up);
    up->add_option_function<std::string>(
        "--rpc-port",
        [this](const std::string& port) {
          into_.flags.push_back({"coordinator.rpc_listen", "127.0.0.1:" + port, "flag --rpc-port"});
        },
        "port for clients, 0 = a free one (7400)");
    add_keys(
        *add(app_, "coordinator", "serve as coordinator, until a signal", command::coordinator),
        k_coordinator);
    add_keys(*add(app_, "worker", "serve as expert worker, until a signal", command::worker),
             k_worker);
  }

  void add_asking() {
    add_doctor();
    add_status();
    CLI::App* placement = app_.add_subcommand("placement", "which expert sits where");
    placement->require_subcommand(1);
    placement->fallthrough();
    add(*placement, "show", "the committed placement; json is a plan file",
        command::placement_show);
    CLI::App* heatmap =
        add(*placement, "heatmap", "the experts with the most rows, and where they lie",
            command::placement_heatmap);
    heatmap->add_option("--layer", into_.heatmap.layer, "model layer; every MoE layer unless given")
        ->check(CLI::Range(0, 65535));
    heatmap->add_option("--top", into_.heatmap.top, "experts of each layer")
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    add(app_, "log-level", "what the coordinator and its workers log, from now on",
        command::log_level)
        ->add_option("LEVEL", into_.log_level, "debug, info, warn, error, off; or configured")
        ->required()
        ->check(CLI::IsMember({"debug", "info", "warn", "error", "off", "configured"}));
    add_adapters();
    add_forward();
    add_bench_flags(app_, into_);
    add_resolve();
    add_plan_flags(
        *add(app_, "plan", "which expert should sit where, from how often each is chosen; offline",
             command::plan),
        into_.plan);
  }

  void add_status() {
    CLI::App* status =
        add(app_, "status", "the tier's state; 8 when it is not ready", command::status);
    CLI::Option* const watch =
        status->add_flag("--watch", into_.watch.on, "again and again, until Ctrl-C");
    status
        ->add_option_function<std::string>(
            "--interval",
            [this](const std::string& text) {
              const auto d = config::parse_duration(text);
              if (!d || *d < 100 * k_millisecond || *d > 3600 * k_second)
                throw CLI::ValidationError("--interval", "100ms to 1h");
              into_.watch.interval = *d;
            },
            "between two looks (1s)")
        ->needs(watch);
  }

  void add_doctor() {
    doctor_options& o = into_.doctor;
    CLI::App* d = add(app_, "doctor", "is this machine fit for a tier? 8 when a check fails",
                      command::doctor);
    add_keys(*d, k_doctor);
    CLI::Option* const peers =
        d->add_option("--peers", o.peers,
                      "HOST:PORT,..: how far other machines are, each a doctor that answers or a "
                      "tier's RPC address")
            ->delimiter(',')
            ->check(wrong_peer);
    CLI::Option* const answer =
        d->add_option("--answer", o.answer,
                      "HOST:PORT: answer other doctors' --peers there, until a signal")
            ->check(wrong_listener);
    answer->excludes(peers);
    d->add_flag("--insecure", o.insecure,
                "with --answer: on an address that is not loopback, where anybody may measure")
        ->needs(answer);
  }

  void add_adapters() {
    adapter_options& o = into_.adapter;
    CLI::App* adapters = app_.add_subcommand("adapters", "low-rank adapters of routed experts");
    adapters->require_subcommand(1);
    adapters->fallthrough();
    add(*adapters, "list", "which are loaded, their ids, who holds them", command::adapters_list);
    CLI::App* load =
        add(*adapters, "load", "let every worker read one; shows its id", command::adapters_load);
    load->add_option("NAME", o.name, "how it is called here")->required();
    load->add_option("DIR", o.directory, "in PEFT form; every worker reads it there")->required();
    CLI::App* drop = add(*adapters, "drop", "calls can name it no longer", command::adapters_drop);
    drop->add_option("NAME", o.name, "as it was loaded")->required();
  }

  void add_forward() {
    forward_options& o = into_.forward;
    CLI::App* f =
        add(app_, "forward", "one MoE layer over rows of a safetensors file", command::forward);
    f->add_option("--layer", o.layer, "model layer, dense layers counted")
        ->required()
        ->check(CLI::Range(0, 65535));
    f->add_option("--in", o.in, "hidden and logits, or ids and weights")->required();
    f->add_option("--out", o.out, "where output goes");
    f->add_option("--prefix", o.prefix, "what stands before the tensors' names");
    f->add_option("--use", o.use, "logits or ids, where both stand; gate: the tier computes logits")
        ->check(CLI::IsMember({"logits", "ids", "gate"}));
    f->add_option("--hidden", o.hidden, "the tensor with the rows")->capture_default_str();
    f->add_option_function<std::string>(
         "--shared-experts", [&o](const std::string& side) { o.shared_experts = side == "tier"; },
         "client (default) or tier: the tier computes and adds them")
        ->check(CLI::IsMember({"client", "tier"}));
    f->add_option("--return-mode", o.return_mode, "partial or exact")
        ->check(CLI::IsMember({"partial", "exact"}));
    f->add_option_function<std::string>(
         "--via", [&o](const std::string& via) { o.direct = via == "direct"; },
         "gateway (default) or direct")
        ->check(CLI::IsMember({"gateway", "direct"}));
    f->add_option_function<std::string>(
         "--deadline-class", [&o](const std::string& name) { o.urgency = deadline_class_of(name); },
         "decode, prefill or batch; the tenant's highest unless given")
        ->check(CLI::IsMember({"decode", "prefill", "batch"}));
    f->add_option("--tenant", o.tenant, "who asks, where no certificate says it")
        ->capture_default_str();
    f->add_option("--micro-batches", o.micro_batches, "calls that the rows are split into")
        ->check(CLI::Range(1, 4));
    f->add_flag("--with-routing", o.with_routing, "also write ids and weights as routed");
    f->add_flag("--check", o.check, "compare with a tensor of the file; 8 when it differs");
    f->add_option("--expect", o.expected, "the tensor that --check compares with")
        ->capture_default_str();
    f->add_option("--tolerance", o.tolerance,
                  "largest error that --check allows, as a part of the expected tensor's largest "
                  "absolute value")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
  }

  void add_resolve() {
    resolve_options& o = into_.resolve;
    CLI::App* r = add(app_, "resolve", "which backend and carrier would run, or do, and why",
                      command::resolve);
    r->add_option("--model", o.model, "a Hugging Face model directory, or its config.json");
    r->add_option("--environment", o.environments,
                  "what --capture wrote: one for all workers or one each; this machine without it")
        ->allow_extra_args(false);
    r->add_option("--workers", o.workers, "one for each environment unless given")
        ->check(CLI::Range(1, 64));
    r->add_option("--tokens", o.tokens, "tokens of one call (session.max_tokens)")
        ->check(CLI::Range(1, 1'000'000));
    r->add_option("--slots", o.slots, "slots of each worker per layer; E over all unless given")
        ->check(CLI::Range(1, 1024));
    r->add_option_function<std::string>(
         "--eplb", [&o](const std::string& text) { o.eplb = text == "on"; },
         "on or off; on where there are more slots than experts")
        ->check(CLI::IsMember({"on", "off"}));
    r->add_option("--return-mode", o.return_mode, "partial or exact")
        ->check(CLI::IsMember({"partial", "exact"}));
    r->add_option("--force", o.forced, "backend=NAME or communication=NAME; 4 when it cannot run")
        ->allow_extra_args(false);
    r->add_flag("--no-degradation", o.no_degradation, "4 rather than a slower replacement");
    // Neither takes what describes another tier: silence would look like an answer about it.
    const std::vector<CLI::Option*> offline = r->get_options();
    CLI::Option* const live =
        r->add_flag("--live", o.live, "what the tier at --address has resolved");
    CLI::Option* const capture =
        r->add_flag("--capture", o.capture, "print this machine's environment as JSON");
    for (CLI::Option* const option : offline) {
      if (option == r->get_help_ptr()) continue;
      live->excludes(option);
      capture->excludes(option);
    }
    live->excludes(capture);
  }

  command_line& into_;
  CLI::App app_{"moetier: a tier that holds the experts of a Mixture-of-Experts model"};
};

}  // namespace

bool wants_json(int argc, const char* const* argv) noexcept {
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if ((word == "-o" || word == "--output") && i + 1 < argc) {
      json = std::string_view(argv[++i]) == "json";
    } else if (word.starts_with("-o") || word.starts_with("--output=")) {
      json = word == "-ojson" || word == "-o=json" || word == "--output=json";
    }
  }
  return json;
}

std::variant<command_line, exit_code> parse_command_line(int argc, const char* const* argv) {
  command_line parsed;
  return builder(parsed).parse(argc, argv);
}

}  // namespace moetier::cli
