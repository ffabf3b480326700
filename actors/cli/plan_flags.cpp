#include "actors/cli/plan_flags.hpp"

#include <CLI/CLI.hpp>

#include "actors/config/quantity.hpp"

namespace moetier::cli {
namespace {

constexpr const char* k_examples = R"(Examples:
  moetier plan --counts loads.csv --workers 8                     what a plan would win
  moetier plan --counts loads.csv --workers 8 --out plan.json     and a file for up --placement
  moetier plan --counts new.csv --from plan.json --out next.json  follow new loads with few copies
  moetier plan --from plan.json --export trtllm.json              the same plan for TensorRT-LLM
-o json prints the figures as JSON; the plan itself is the file of --out.
Rows and tensors of the same layer are summed. Nothing is asked of a running tier,
but by --advise --from-stats.

)";

// Of all layers' copies the bytes are still a number: 1024 layers, 32767 slots.
constexpr std::uint64_t k_expert_bytes_max = std::uint64_t{256} << 30;

double in_us(const std::string& flag, const std::string& text) {
  const auto d = config::parse_duration(text);
  if (!d || *d == 0)
    throw CLI::ValidationError(
        flag, text + " is no duration: a whole number with its unit, as 150us or 50ms");
  return static_cast<double>(*d) / 1000;
}

void add_duration(CLI::App& plan, const std::string& flag, double& into_us,
                  const std::string& help) {
  plan.add_option_function<std::string>(
          flag, [flag, &into_us](const std::string& text) { into_us = in_us(flag, text); }, help)
      ->type_name("DURATION")
      ->group("Advice");
}

void add_inputs(CLI::App& plan, plan_options& o) {
  const char* const group = "Loads";
  plan.add_option("--counts", o.loads.counts,
                  "how often each expert was chosen: CSV (head layer,e0,e1,... and a row of whole "
                  "numbers per layer) or safetensors ([layer, expert] or [step, layer, expert])")
      ->type_name("FILE")
      ->group(group);
  plan.add_option("--trace", o.loads.trace,
                  "chosen expert ids instead: safetensors, tensors ending with layerN of [rows, k]")
      ->type_name("FILE")
      ->group(group);
  plan.add_option("--prefix", o.loads.prefix, "only tensors whose names begin so")->group(group);
  plan.add_option("--tensor", o.loads.tensor, "only this one (after --prefix)")->group(group);
  plan.add_option("--axes", o.loads.axes,
                  "order of a counts tensor's dimensions, as layer,sample,expert")
      ->group(group);
  plan.add_option("--experts", o.loads.experts, "of a layer, where the file does not say")
      ->check(CLI::Range(1, 4096))
      ->group(group);
  plan.add_option("--model", o.model,
                  "a model directory or its config.json: checks experts and layers, and the plan "
                  "then fits this model only")
      ->type_name("PATH")
      ->group(group);
}

void add_tier(CLI::App& plan, plan_options& o) {
  const char* const group = "Workers";
  plan.add_option("--workers", o.workers, "how many; needed unless --from is a plan")
      ->check(CLI::Range(1, 1024))
      ->group(group);
  plan.add_option(
          "--slots", o.slots,
          "per layer over all workers together (up's --slots is one worker's); at least the "
          "experts; unless given, every worker has one to spare")
      ->check(CLI::Range(1, 32767))
      ->group(group);
  plan.add_option("--slots-per-worker", o.slots_per_worker,
                  "instead: one number a worker, by commas, where they differ")
      ->delimiter(',')
      ->group(group);
  plan.add_option("--nodes", o.nodes, "machines that the workers are divided over, in order")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str()
      ->group(group);
  plan.add_option("--min-replicas", o.min_replicas,
                  "prefer this many replicas of every expert where slots are left")
      ->check(CLI::Range(1, 64))
      ->capture_default_str()
      ->group(group);
}

void add_plans(CLI::App& plan, plan_options& o) {
  const char* const group = "Plans";
  plan.add_option("--from", o.from,
                  "a plan file, or TensorRT-LLM's assignments: it is repaired with few copies "
                  "instead of planned anew; without loads it is converted")
      ->type_name("FILE")
      ->group(group);
  plan.add_option("--budget", o.budget,
                  "with --from: copies per layer (8), or bytes in all as 10GiB, with --expert-size")
      ->group(group);
  plan.add_option_function<std::string>(
          "--expert-size",
          [&o](const std::string& text) {
            const auto size = config::parse_size(text);
            if (!size || *size == 0 || *size > k_expert_bytes_max)
              throw CLI::ValidationError("--expert-size",
                                         text +
                                             " is no size: a whole number with its unit, as "
                                             "44MiB, and at most 256GiB");
            o.expert_bytes = *size;
          },
          "with --from: bytes of one expert of one layer, as 44MiB; shows copies in bytes and time")
      ->type_name("SIZE")
      ->group(group);
  plan.add_option("--out", o.out, "the plan file (JSON), for up --placement")
      ->type_name("FILE")
      ->group(group);
  plan.add_option("--export", o.export_file,
                  "also write TensorRT-LLM's assignments, which have no shares")
      ->type_name("FILE")
      ->group(group);
}

void add_advice(CLI::App& plan, plan_options& o) {
  const char* const group = "Advice";
  advise_options& a = o.advise;
  plan.add_flag(
          "--advise", a.asked,
          "no plan: whether separate workers pay; needs --ta --te --tc --tpot (--te and --tc or "
          "--from-stats), and --layers --hidden-size --top-k or --model")
      ->group(group);
  add_duration(plan, "--ta", a.attention_us,
               "attention, per layer and micro-batch of one GPU, as 150us");
  add_duration(plan, "--te", a.experts_us, "a worker's experts for the rows of one such GPU");
  add_duration(plan, "--tc", a.leg_us, "one way between them");
  plan.add_option_function<std::string>(
          "--tpot", [&a](const std::string& text) { a.tpot_ms = in_us("--tpot", text) / 1000; },
          "time per output token that is wanted")
      ->type_name("DURATION")
      ->group(group);
  plan.add_option(
          "--from-stats", a.from_stats,
          "a running tier's coordinator, as http://127.0.0.1:7402: tells --te and --tc from "
          "the calls of its thin clients")
      ->type_name("URL")
      ->group(group);
  plan.add_option("--layers", a.layers, "MoE layers (or --model)")->group(group);
  plan.add_option("--hidden-size", a.hidden_size, "values of a row (or --model)")->group(group);
  plan.add_option("--top-k", a.top_k, "experts of a token (or --model)")->group(group);
  plan.add_option("--tokens", a.tokens, "of one attention GPU in a step")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str()
      ->group(group);
  plan.add_option("--nic", a.nic_gb_per_s, "GB/s of a worker's network, each way")
      ->capture_default_str()
      ->group(group);
}

}  // namespace

void add_plan_flags(CLI::App& plan, plan_options& into) {
  add_inputs(plan, into);
  add_tier(plan, into);
  add_plans(plan, into);
  add_advice(plan, into);
  plan.footer(k_examples + plan.get_footer());
}

}  // namespace moetier::cli
