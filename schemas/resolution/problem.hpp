#pragma once
// What is to be computed, as a candidate sees it: shape, format, activation, routing and return
// mode of the MoE layers. Made from a model description; equal problems are resolved once. Every
// field is known; how it is spread over workers is the deployment's business.
// Thread: any (an immutable value).

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>

#include "schemas/base/checksum.hpp"
#include "schemas/base/error.hpp"
#include "schemas/model/model_description.hpp"
#include "schemas/resolution/words.hpp"

namespace moetier::resolution {

struct problem {
  quant_kind quant = quant_kind::none;
  dtype stored = dtype::bf16;     // of unquantised weights
  dtype dtype_act = dtype::bf16;  // of the hidden rows that sources send
  std::uint32_t hidden_size = 0;  // H
  std::uint32_t intermediate_size = 0;
  std::uint32_t num_experts = 0;
  std::uint32_t top_k = 0;
  bool expert_bias = false;
  activation_kind activation = activation_kind::swiglu;
  bool constant_alpha = false;  // which constants any layer gives
  bool constant_beta = false;
  bool constant_clamp = false;
  routing_method routing = routing_method::unspecified;
  std::uint32_t groups = 1;
  std::uint32_t groups_kept = 1;
  weight_point weight_at = weight_point::output;
  answer_mode return_mode = answer_mode::partial;
  std::uint32_t router_width = 0;  // columns of the rows that the router reads

  bool operator==(const problem&) const = default;
};

// The problem of a model's layers. A constant counts as given when one layer has it: a backend
// serves all layers.
problem problem_of(const model_description& model, answer_mode mode, dtype hidden = dtype::bf16);

// reason::invalid_argument for a size that no model may have.
expected<void> check_problem(const problem& p);

// One line per field; equal texts mean equal problems. Part of the protocol.
std::string canonical_text(const problem& p);
// First 64 bits of SHA-256 over the canonical text.
std::uint64_t hash_of(const problem& p);

// Names every field once, in the order of documents and canonical texts.
template <class Problem, class Visitor>
requires std::same_as<std::remove_const_t<Problem>, problem>
void walk(Problem& p, Visitor&& visit) {
  visit("quant", p.quant);
  visit("stored", p.stored);
  visit("dtype_act", p.dtype_act);
  visit("hidden_size", p.hidden_size);
  visit("intermediate_size", p.intermediate_size);
  visit("num_experts", p.num_experts);
  visit("top_k", p.top_k);
  visit("expert_bias", p.expert_bias);
  visit("activation", p.activation);
  visit("constant_alpha", p.constant_alpha);
  visit("constant_beta", p.constant_beta);
  visit("constant_clamp", p.constant_clamp);
  visit("routing", p.routing);
  visit("groups", p.groups);
  visit("groups_kept", p.groups_kept);
  visit("weight_at", p.weight_at);
  visit("return_mode", p.return_mode);
  visit("router_width", p.router_width);
}

}  // namespace moetier::resolution
