#include "actors/cli/bench_flags.hpp"

#include <CLI/CLI.hpp>

namespace moetier::cli {
namespace {

constexpr int k_repeat_max = 10'000'000;

// Nothing that it leaves in the app refers to it.
class bench_builder final {
 public:
  bench_builder(CLI::App& app, command_line& into) : into_(into) {
    bench_ = app.add_subcommand("bench", "measurements");
    bench_->require_subcommand(1);
    bench_->fallthrough();
  }

  void add_all() {
    add_tier();
    add_sessions();
    add_wire();
    add_kernels();
    add_plan();
  }

 private:
  CLI::App* add(const char* name, const char* text, command what) {
    CLI::App* sub = bench_->add_subcommand(name, text);
    sub->fallthrough();
    sub->callback([&into = into_, what] { into.what = what; });
    return sub;
  }

  static void add_demands(CLI::App& bench, std::vector<figure_demand>& into, const char* text) {
    bench
        .add_option_function<std::vector<std::string>>(
            "--assert",
            [&into](const std::vector<std::string>& texts) {
              for (const std::string& one : texts) {
                const auto demand = parse_demand(one);
                if (!demand) throw CLI::ValidationError("--assert", one + " is not FIGURE=NUMBER");
                into.push_back(*demand);
              }
            },
            text)
        ->type_name("FIGURE=VALUE")
        ->allow_extra_args(false);
  }

  // What the benches that call a tier have in common.
  template <class Options>
  void add_tier_of(CLI::App& bench, Options& o) {
    bench
        .add_option("--workers", o.workers,
                    "numbers of workers, as 1,2,3: an embedded tier each, in turn; the running "
                    "tier at --address unless given")
        ->check(CLI::Range(1, 64))
        ->delimiter(',');
    bench.add_option_function<std::string>(
        "--model",
        [&into = into_](const std::string& value) {
          into.flags.push_back({"model.path", value, "flag --model"});
        },
        "the embedded tiers' model directory");
    bench.add_option("--layer", o.layer, "model layer; the first MoE layer unless given")
        ->check(CLI::Range(0, 65535));
    bench.add_option_function<std::string>(
        "--load,--distribution",
        [&o](const std::string& text) {
          const auto wish = parse_load(text);
          if (!wish) {
            throw CLI::ValidationError(
                "--load", text + " is no load; allowed: normal, balanced, zipf, zipf:0 to zipf:8");
          }
          o.load = *wish;
        },
        "router logits: normal (default), balanced or zipf[:ALPHA]");
    bench.add_option("--seed", o.seed, "of rows and logits")->capture_default_str();
  }

  void add_tier() {
    bench_options& o = into_.bench;
    CLI::App* tier = add("tier", "round trip of direct calls, by stage, beside a bare echo",
                         command::bench_tier);
    tier->add_option("--repeat", o.calls, "calls that are measured")
        ->check(CLI::Range(1, k_repeat_max))
        ->capture_default_str();
    tier->add_option("--warmup", o.warmup, "calls before")
        ->check(CLI::Range(0, k_repeat_max))
        ->capture_default_str();
    tier->add_option("--tokens", o.tokens, "tokens of a call, as 1,16,256")
        ->check(CLI::Range(1, 4096))
        ->delimiter(',')
        ->capture_default_str();
    add_tier_of(*tier, o);
    tier->add_flag("--markdown", o.markdown, "the table as README shows it");
    add_demands(*tier, o.demands,
                "8 unless every row keeps to it: p50_us, p99_us, own_share_us, own_share_echoes "
                "(at most), tokens_per_s, roofline_ratio (at least); may be repeated");
  }

  void add_sessions() {
    sessions_options& o = into_.sessions;
    CLI::App* sessions =
        add("sessions", "several sessions against one at equal tokens", command::bench_sessions);
    sessions->add_option("--sessions", o.sessions, "numbers of sessions, as 1,2,4; one always is")
        ->check(CLI::Range(1, 16))
        ->delimiter(',')
        ->capture_default_str();
    sessions
        ->add_option("--tokens", o.tokens,
                     "tokens of a step of all sessions together, as 4,256; at least one each")
        ->check(CLI::Range(1, 4096))
        ->delimiter(',')
        ->capture_default_str();
    sessions
        ->add_option("--repeat", o.rounds,
                     "rounds, in each of which every number of sessions has its turn; medians are "
                     "shown")
        ->check(CLI::Range(1, 100'000))
        ->capture_default_str();
    sessions->add_option("--steps", o.steps, "steps of every session in one turn")
        ->check(CLI::Range(1, 100'000))
        ->capture_default_str();
    add_tier_of(*sessions, o);
    sessions->add_flag("--markdown", o.markdown, "the table as README shows it");
    add_demands(*sessions, o.demands,
                "8 unless every row keeps to it: cost (at most; time over that of one session), "
                "tokens_per_s (at least); may be repeated");
  }

  void add_wire() {
    wire_options& o = into_.wire;
    CLI::App* wire =
        add("wire", "bare round trips of the carriers beside this machine's memory copies",
            command::bench_wire);
    wire->add_option("--hidden", o.hidden_size, "H: a row is H numbers of 4 bytes")
        ->check(CLI::Range(4, 65536))
        ->capture_default_str();
    wire->add_option("--rows", o.rows, "rows of a message, as 1,16,256")
        ->check(CLI::Range(1, 4096))
        ->delimiter(',')
        ->capture_default_str();
    wire->add_option("--mib", o.mebibytes, "messages of so many MiB besides, as 1,16; 0 = none")
        ->check(CLI::Range(0, 64))
        ->delimiter(',')
        ->capture_default_str();
    wire->add_option("--way", o.ways,
                     "ways to go: shm, tcp, ucx, shared_memory, in_process (all unless given)")
        ->check(CLI::IsMember({"shm", "tcp", "ucx", "shared_memory", "in_process"}))
        ->delimiter(',');
    wire->add_option("--repeat", o.calls, "round trips that are measured; fewer of large messages")
        ->check(CLI::Range(1, k_repeat_max))
        ->capture_default_str();
    wire->add_option("--warmup", o.warmup, "round trips before")
        ->check(CLI::Range(0, k_repeat_max))
        ->capture_default_str();
    wire->add_flag("--markdown", o.markdown, "the table as README shows it");
    add_demands(*wire, o.demands,
                "8 unless every row keeps to it: p50_us, p99_us (at most), algbw, roofline_ratio "
                "(at least); may be repeated");
  }

  void add_kernels() {
    kernels_options& o = into_.kernels;
    CLI::App* kernels =
        add("kernels", "this machine's kernels beside plain code; 8 when they disagree",
            command::bench_kernels);
    kernels->add_option("--part", o.part,
                        "one part: routing, combine, cpu, experts, device (all unless given)");
    kernels->add_option("--seed", o.seed, "of the random input")->capture_default_str();
    kernels->add_option("--repeat", o.repeat, "measurements of each form; medians are shown")
        ->check(CLI::Range(1, 1'000'000))
        ->capture_default_str();
    kernels->add_option("--backend", o.backend,
                        "what one backend has: cpu_avx2, sm90_fp8, sm90_bf16");
    kernels->add_option("--shape", o.shape,
                        "cpu: N x K, as 2048x768,768x2048; device: one name (all unless given)");
    kernels->add_option("--format", o.format, "device: bf16 or fp8_block (both unless given)")
        ->check(CLI::IsMember({"bf16", "fp8_block"}));
    kernels
        ->add_option("--rows", o.rows, "cpu, device: numbers of rows, as 1,64 (all unless given)")
        ->delimiter(',');
    kernels->add_option(
        "--peer", o.peer,
        "cpu: module of another library's product, or none (looked for unless given)");
    kernels->add_flag("--markdown", o.markdown, "tables as README shows them");
  }

  void add_plan() {
    plan_bench_options& o = into_.plan_bench;
    CLI::App* plan = add("plan", "plans beside the reference greedy's: balance, copies, time",
                         command::bench_plan);
    plan->add_option("--part", o.part,
                     "one part: planned, realised, split, small_batch (all unless given)");
    plan->add_option("--domains", o.domains,
                     "recorded loads: safetensors [layer, expert], one tensor a domain");
    plan->add_option("--trace", o.trace, "recorded ids: safetensors DOMAIN.layerN [rows, k]");
    plan->add_option("--trace-experts", o.trace_experts, "experts of --trace")
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    plan->add_option("--layers", o.layers, "of a drifting trace")
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
    plan->add_option("--windows", o.windows, "that are judged")
        ->check(CLI::Range(1, 100'000))
        ->capture_default_str();
    plan->add_option("--seed", o.seed, "of all loads")->capture_default_str();
    plan->add_option("--repeat", o.repeat, "measurements of each time; medians are shown")
        ->check(CLI::Range(1, 1'000'000))
        ->capture_default_str();
    plan->add_option("--plots", o.plots, "folder for SVG plots of the realised part");
  }

  command_line& into_;
  CLI::App* bench_ = nullptr;
};

}  // namespace

void add_bench_flags(CLI::App& app, command_line& into) { bench_builder(app, into).add_all(); }

}  // namespace moetier::cli
