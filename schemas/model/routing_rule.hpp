#pragma once
// How router logits become experts and weights: the method and its parameters, the same for all
// layers of a model. What differs by layer (selection bias, per-expert scale, tables) is in
// routing_tables.hpp. The formulas stand beside each method; s = sigmoid(logit), q =
// sqrt(softplus(logit)), p = softmax over all columns, b = selection bias; sums run over the k
// chosen. Thread: any (values).

#include <cstdint>
#include <string_view>

namespace moetier {

// Numbers are public: they travel in snapshots and stand in reports.
enum class routing_method : std::uint8_t {
  default_softmax = 0,    // key logit; weight softmax over all E
  renormalize = 1,        // key logit; softmax over the k chosen, times the expert's scale if any
  deepseek_v3 = 2,        // key s+b inside the best groups; s/(sum s + eps)·f, or s·f
  llama4 = 3,             // key logit; s, not normalised
  renormalize_naive = 4,  // softmax, top-k, divided by the sum: the same values as renormalize
  minimax2 = 5,           // key s+b; s/(sum s + eps)·f
  sigmoid_renorm = 6,     // key logit; s/(sum s + eps), or s
  deepseek_v4 = 7,        // key q+b, or ids from a table by token id; q/(sum q + eps)·f
  unspecified = 8,        // refused
  deepseek_v2 = 9,        // key logit inside the best groups (by largest); p·f
  sqrt_softplus = 10,     // key q+b; q/(sum q + eps)·f
  sparse_mixer = 11,      // one arg-max after the other, softmax over those that are near it
  static_table = 12,      // ids (and weights, else 1) from a table
  round_robin = 13,       // id = (t·k + j) mod E, weight 1
  softmax_group = 14,  // key p inside the best groups (two largest p); p/(sum p + 1e-20)·f, or p·f
  softmax_bias = 15,   // key p+b; p/max(sum p, eps)
  softmax_bias_raw = 16,  // key p+b over E + identity columns; p·f
  softmax_pnorm = 17,     // key logit; p/(sum p^power)^(1/power)
};
inline constexpr std::uint8_t k_routing_methods = 18;

// "deepseek_v3": the name in configuration and reports; empty for a number out of range.
std::string_view routing_method_name(routing_method method) noexcept;
// unspecified if no method has this name.
routing_method routing_method_of(std::string_view name) noexcept;

struct routing_rule {
  routing_method method = routing_method::unspecified;
  bool renormalise = true;             // 2, 6, 14: divide by the sum
  float scaling = 1.0F;                // f
  float epsilon = 1e-20F;              // 2, 5, 6, 7, 10: in the sum; 11: jitter; 15: least sum
  float power = 1.0F;                  // 17
  std::uint32_t groups = 1;            // 2, 9, 14: n_group expert groups of neighbours
  std::uint32_t groups_kept = 1;       // topk_group of them
  std::uint32_t identity_experts = 0;  // 16: columns E.. whose expert is the identity

  bool operator==(const routing_rule&) const = default;
};

}  // namespace moetier
