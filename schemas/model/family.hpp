#pragma once
// A model family as data: what its config.json means and how its files name the tensors of the MoE
// layers. One small file per family in families/, read by one loader for configurations
// (config.cpp) and one for weights (workers/weights); a new family that brings no new method or
// activation is a file there and a row in family.cpp. Keys and names are the released ones; those
// that several families share, or that other tools write instead, are lists in the loader.
// Thread: any (constants).

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "schemas/model/model_description.hpp"

namespace moetier {

enum class projection : std::uint8_t { gate = 0, up = 1, down = 2 };
inline constexpr std::size_t k_projections = 3;

// Which decoder layers are MoE layers; each rule's keys stand beside it.
enum class layer_rule : std::uint8_t {
  all,
  sparse_step,  // (l + 1) mod decoder_sparse_step = 0 and l not in mlp_only_layers
  after_dense,  // mlp_layer_types, else moe_layer_freq as a 0/1 list, else l >= dense_key and l mod
                // moe_layer_freq = 0
  period,       // l mod expert_layer_period = expert_layer_offset
  interval,     // (l + 1) mod moe_layer_interval = 0, moe_layer_start_index .. moe_layer_end_index
  listed,       // moe_layers, else each interleave_moe_layer_step-th
  pattern,      // letter E of hybrid_override_pattern, else "moe" in layers_block_type
  enumerated,   // moe_layers_enum "3,4", else mlp_layer_types
};

// Whether weights are divided by their sum (norm_topk_prob, moe_renormalize).
enum class norm_rule : std::uint8_t {
  always,         // whatever a key says
  unless_told,    // an absent key means yes
  if_told,        // an absent key means no
  must_be_told,   // an absent key is refused
  never_allowed,  // yes is refused: implementations differ
};

// How one tensor holds the experts of a layer. H in rows, I in columns and so on as shapes say.
enum class packing : std::uint8_t {
  none,
  rows,                 // gate_up [E, 2I, H], gate rows first; down [E, H, I]
  columns,              // gate_up [E, H, 2I], gate columns first; down [E, I, H]
  columns_interleaved,  // the same, even columns gate, odd up; quantised: rows, even gate, odd up
  stacked,              // gate, up [E, I, H]; down [E, H, I]
  flat,                 // gate, up [E·I, H]; down [E·I, H], each expert's in-major
};

// A name is {stem}{layer}.{rest}; an empty name means that the family has no such tensor.
struct tensor_names {
  std::array<std::string_view, 3> stems{"model.layers.", "language_model.model.layers.",
                                        "model.language_model.layers."};
  std::string_view router = "mlp.gate.weight";  // [columns, router_width]
  std::string_view router_bias{};               // [columns], part of the logits
  std::string_view selection_bias{};            // [columns]
  std::string_view token_table{};               // [rows, k], layers that choose by token id
  std::string_view expert_scale{};              // [E]
  std::string_view experts = "mlp.experts.";    // what stands under it is an expert's
  // {experts}{expert}.{split}{.weight or what the quantised format has}.
  std::array<std::string_view, k_projections> split{"gate_proj", "up_proj", "down_proj"};
  // {experts}{packed}{packed_end}; without an up of its own, gate is gate and up.
  packing packed_as = packing::rows;
  std::array<std::string_view, k_projections> packed{"gate_up_proj", "", "down_proj"};
  std::string_view packed_end{};
  std::string_view shared{};  // {shared}{shared_split}.weight
  std::array<std::string_view, k_projections> shared_split{"gate_proj", "up_proj", "down_proj"};
  std::string_view shared_gate{};  // [1, H]
};

// A key that, where it stands, must have this value (JSON text).
struct required_value {
  std::string_view key{};
  std::string_view value{};
};

struct family {
  std::array<std::string_view, 3> model_types{};  // the first is the description's
  std::string_view hidden_key = "hidden_size";
  std::string_view layers_key = "num_hidden_layers";
  std::string_view intermediate_key = "moe_intermediate_size";  // of one expert
  // Of the counts; other tools' keys for the same may stand beside them and must agree.
  std::string_view experts_key = "num_experts";
  std::string_view top_k_key = "num_experts_per_tok";
  std::string_view groups_key = "n_group";
  std::string_view latent_key{};  // experts read and write this width instead, unless null
  std::uint32_t top_k_fixed = 0;  // k whatever a key says; 0 = by key
  layer_rule layers = layer_rule::all;
  std::string_view dense_key = "first_k_dense_replace";

  routing_method normalised = routing_method::renormalize_naive;
  routing_method raw = routing_method::default_softmax;
  norm_rule norm = norm_rule::always;
  std::string_view scoring = "softmax";           // what a scoring key may say
  std::array<std::string_view, 2> top_methods{};  // what topk_method may say
  bool grouped = false;                           // n_group and topk_group count
  std::string_view scaling_key{};                 // of f; must stand unless scaling_absent
  std::optional<float> scaling_absent{};
  std::string_view epsilon_key{};
  std::optional<float> epsilon = 1e-20F;  // where no key says it
  std::string_view power_key{};           // absent: 1; null: the weights stay p
  std::string_view identity_key{};        // number of identity experts
  std::string_view hash_key{};            // so many first layers choose by token id
  std::string_view bias_flag{};           // false: there is no selection bias

  activation_kind activation = activation_kind::swiglu;
  std::string_view activation_key = "hidden_act";
  std::array<std::string_view, 2> activation_names{"silu"};
  bool activation_told = false;   // the key must stand
  given_constants constants{};    // where no key says them
  bool limit_told = false;        // swiglu_limit must stand (null = no clamp)
  std::string_view limits_key{};  // clamps by layer, 0 or null = none
  std::string_view shared_limits_key{};

  std::array<required_value, 4> required{};
  bool expert_bias = false;
  weight_point weight_at = weight_point::output;
  bool router_reads_hidden = true;

  std::string_view shared_count_key{};  // times I; or
  std::uint32_t shared_count_absent = 0;
  std::string_view shared_size_key{};  // of all together

  tensor_names names{};
  const tensor_names* other_names = nullptr;  // of another release form
};

// All families, by first model_type.
std::span<const family> families() noexcept;
// The family of a model_type, or nullptr.
const family* find_family(std::string_view model_type) noexcept;

}  // namespace moetier
