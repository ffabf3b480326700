#include "actors/cli/plan_advice.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/core.h>

namespace moetier::cli {
namespace {

constexpr std::uint32_t k_micro_batches_most = 4;
constexpr double k_nic_least = 1e-3;
constexpr double k_nic_most = 1e6;
constexpr double k_row_bytes_per_value = 2;  // bf16, one row per chosen expert on the way back

}  // namespace

expected<plan_advice> advise(const advise_options& o) {
  constexpr const char* time = "a duration, as 150us";
  constexpr const char* size = "a number above 0; --model tells it too";
  const std::tuple<const char*, double, const char*> needed[] = {
      {"--ta", o.attention_us, time},
      {"--te", o.experts_us, time},
      {"--tc", o.leg_us, time},
      {"--tpot", o.tpot_ms, time},
      {"--layers", double(o.layers), size},
      {"--hidden-size", double(o.hidden_size), size},
      {"--top-k", double(o.top_k), size}};
  for (const auto& [flag, value, allowed] : needed) {
    if (value <= 0) return fail(reason::config_invalid, flag, "not given", allowed);
  }
  if (!(o.nic_gb_per_s >= k_nic_least && o.nic_gb_per_s <= k_nic_most))  // nor any NaN
    return fail(reason::config_invalid, "--nic", o.nic_gb_per_s, "a number from 0.001 to 1000000");
  plan_advice a;
  a.layer_limit_us = o.tpot_ms * 1000 / o.layers;
  const double slower = std::max(o.attention_us, o.experts_us);
  const double one_batch = o.attention_us + o.experts_us + 2 * o.leg_us;
  // The slower side is never idle once the others' time has passed before its next turn.
  const double hidden = std::ceil(one_batch / slower - 1e-9);
  a.micro_batches = static_cast<std::uint32_t>(std::min<double>(hidden, k_micro_batches_most));
  a.layer_us = std::max(one_batch, a.micro_batches * slower);
  // Fewer micro-batches where all of them together would be too slow.
  while (a.micro_batches > 1 && a.layer_us > a.layer_limit_us) {
    --a.micro_batches;
    a.layer_us = std::max(one_batch, a.micro_batches * slower);
  }
  a.ratio = o.attention_us / o.experts_us;
  const double bytes_back = k_row_bytes_per_value * o.tokens * o.top_k * o.hidden_size;
  a.ratio_network = o.nic_gb_per_s * 1e9 * a.layer_limit_us * 1e-6 / bytes_back;
  if (a.layer_us > a.layer_limit_us) {
    a.colocated = true;
    a.why = fmt::format("a layer takes {:.0f} us with both ways, the wanted time leaves {:.0f}",
                        a.layer_us, a.layer_limit_us);
  } else if (hidden > k_micro_batches_most) {
    a.colocated = true;
    a.why = fmt::format("it would take {:.0f} micro-batches to hide the way; at most {} pay",
                        hidden, k_micro_batches_most);
  } else if (a.ratio_network < 1) {
    a.colocated = true;
    a.why = fmt::format("a worker's network serves {:.2f} attention GPUs, less than one",
                        a.ratio_network);
  }
  return a;
}

std::string advice_text(const plan_advice& a) {
  if (a.colocated) return fmt::format("stay colocated: {}\n", a.why);
  return fmt::format(
      "separate: {} micro-batch(es), {:.0f} of {:.0f} us a layer; {:.1f} attention GPUs per worker "
      "by "
      "time, at most {:.1f} by its network\n",
      a.micro_batches, a.layer_us, a.layer_limit_us, a.ratio, a.ratio_network);
}

}  // namespace moetier::cli
