#include "workers/weights/layer_tensors.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_set>

#include <fmt/core.h>

#include "schemas/file/printable.hpp"

namespace moetier::workers {
namespace {

constexpr std::array k_parts{projection::gate, projection::up, projection::down};

constexpr std::uint64_t divided_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

std::size_t index_of(projection part) { return static_cast<std::size_t>(part); }

bool has(const model_description& model, projection part) {
  return part != projection::gate || is_gated(model.activation.kind);
}

// Finds the tensors of one matrix whose names end as the scheme says.
template <class NameOf>
expected<matrix_tensors> find_matrix(const shard_set& shards, const stored_scheme& scheme,
                                     const std::string& place, const matrix_want& want,
                                     std::string_view codes_ending, const NameOf& name_of) {
  matrix_tensors found;
  const auto look = [&](std::string_view ending, std::vector<std::string_view> types,
                        std::vector<shape> shapes, bool optional, tensor_place& into) {
    const wanted_tensor wanted{place, name_of(ending), std::move(types), std::move(shapes)};
    auto at = optional ? find_if_there(shards, wanted) : find_wanted(shards, wanted);
    if (at) into = *at;
    return at;
  };
  const std::vector<shape> scalar{{}, {1}};
  if (auto at = look(codes_ending, want.codes_types, {want.codes}, false, found.codes); !at)
    return unexpected_error(std::move(at.error()));
  if (!scheme.scales.empty()) {
    if (auto at = look(scheme.scales, want.scales_types, want.scales, false, found.scales); !at)
      return unexpected_error(std::move(at.error()));
  }
  if (!scheme.second.empty()) {
    if (auto at = look(scheme.second, {"F32"}, scalar, false, found.second); !at)
      return unexpected_error(std::move(at.error()));
  }
  if (!scheme.input_scale.empty()) {
    if (auto at = look(scheme.input_scale, float_types(), scalar, true, found.input_scale); !at)
      return unexpected_error(std::move(at.error()));
  }
  if (!scheme.stored_shape.empty()) {
    if (auto at = look(scheme.stored_shape, {"I64"}, {{2}}, false, found.stored_shape); !at)
      return unexpected_error(std::move(at.error()));
  }
  return found;
}

struct packed_want {
  projection part;
  shape codes;
  std::uint64_t out;  // of one expert's matrix in this tensor
  std::uint64_t in;
};

// What the packed tensors of a layer must be, as the family packs them.
std::vector<packed_want> packed_wants(const model_description& model, packing as) {
  const std::uint64_t e = model.experts;
  const std::uint64_t h = model.hidden_size;
  const std::uint64_t i = model.intermediate_size;
  using enum projection;
  switch (as) {
    case packing::none: break;
    case packing::rows: return {{gate, {e, 2 * i, h}, 2 * i, h}, {down, {e, h, i}, h, i}};
    case packing::columns:
    case packing::columns_interleaved:
      return {{gate, {e, h, 2 * i}, 2 * i, h}, {down, {e, i, h}, h, i}};
    case packing::stacked:
      return {{gate, {e, i, h}, i, h}, {up, {e, i, h}, i, h}, {down, {e, h, i}, h, i}};
    case packing::flat:
      return {{gate, {e * i, h}, i, h}, {up, {e * i, h}, i, h}, {down, {e * i, h}, h, i}};
  }
  return {};
}

expected<void> find_packed(const model_description& model, const tensor_naming& naming,
                           const shard_set& shards, layer_id layer, layer_tensors& found) {
  const bool quantised = model.format.quant != quant_kind::none;
  // Quantised files keep the matrices out-major; one by one those that are named as matrices are.
  const bool known =
      !quantised || model.format.quant == quant_kind::mxfp4 ||
      (model.format.quant == quant_kind::fp8_block && naming.names->packed_as == packing::stacked);
  if (!known)
    return fail(reason::model_unsupported, "quantization_config", quant_name(model.format.quant),
                "one tensor for each expert's projection");
  found.experts.resize(k_projections);
  const std::string place = fmt::format("layer {}", layer.value);
  for (const packed_want& want : packed_wants(model, naming.names->packed_as)) {
    matrix_want shapes = want_of(model, naming.scheme, want.out, want.in, model.experts);
    if (!quantised) shapes.codes = want.codes;
    const std::string_view ending =
        quantised ? naming.scheme.codes : std::string_view(naming.names->packed_end);
    auto matrix = find_matrix(
        shards, naming.scheme, place, shapes, ending,
        [&](std::string_view end) { return naming.packed_name(layer.value, want.part, end); });
    if (!matrix) return unexpected_error(std::move(matrix.error()));
    found.experts[index_of(want.part)] = *matrix;
    if (!model.expert_bias) continue;
    auto bias = find_wanted(shards, {place,
                                     naming.packed_name(layer.value, want.part, "_bias"),
                                     {tensor_type_of(model.format.stored).name, "F32"},
                                     {{model.experts, want.out}}});
    if (!bias) return unexpected_error(std::move(bias.error()));
    found.biases[index_of(want.part)] = *bias;
  }
  return {};
}

std::optional<std::uint32_t> take_number(std::string_view& rest) {
  std::uint32_t value = 0;
  const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (problem != std::errc{}) return std::nullopt;
  const auto digits = static_cast<std::size_t>(end - rest.data());
  if (digits > 1 && rest.front() == '0') return std::nullopt;
  rest.remove_prefix(digits);
  if (!rest.starts_with('.')) return std::nullopt;
  rest.remove_prefix(1);
  return value;
}

}  // namespace

matrix_want want_of(const model_description& model, const stored_scheme& scheme, std::uint64_t out,
                    std::uint64_t in, std::uint64_t leading) {
  const auto with = [&](shape rest) {
    if (leading != 0) rest.insert(rest.begin(), leading);
    return rest;
  };
  matrix_want want;
  want.codes_types = {scheme.codes_type};
  want.codes = with({out, in});
  if (!scheme.scales_type.empty()) want.scales_types = {scheme.scales_type};
  switch (model.format.quant) {
    case quant_kind::none: want.codes_types = {tensor_type_of(model.format.stored).name}; break;
    case quant_kind::fp8_tensor:
      want.scales_types = {"F32", "BF16"};
      want.scales = {{}, {1}, {out, 1}, {out}};
      break;
    case quant_kind::fp8_block:
      if (scheme.scales_type.empty()) want.scales_types = {"F32", "BF16"};
      want.scales = {with({divided_up(out, 128), divided_up(in, 128)})};
      break;
    case quant_kind::mxfp8:
    case quant_kind::mxfp4:
      // One tensor of all experts has a dimension for the groups.
      want.codes = leading != 0 ? with({out, in / 32, 16}) : with({out, in / 2});
      want.scales = {with({out, in / 32})};
      break;
    case quant_kind::nvfp4:
      want.codes = with({out, in / 2});
      want.scales = {with({out, in / 16})};
      break;
    case quant_kind::int4_g128:
      want.codes = with({out, in / 8});
      want.scales_types = {"BF16"};
      want.scales = {with({out, in / 128})};
      break;
  }
  return want;
}

expected<layer_tensors> find_layer(const model_description& model, const tensor_naming& naming,
                                   const shard_set& shards, layer_id layer) {
  layer_tensors found;
  if (naming.packed) {
    if (auto done = find_packed(model, naming, shards, layer, found); !done)
      return unexpected_error(std::move(done.error()));
    return found;
  }
  const std::uint64_t hidden = model.hidden_size;
  const std::uint64_t inner = model.intermediate_size;
  const matrix_want widening = want_of(model, naming.scheme, inner, hidden);
  const matrix_want narrowing = want_of(model, naming.scheme, hidden, inner);
  for (std::uint32_t expert = 0; expert < model.experts; ++expert) {
    const std::string place = fmt::format("layer {} expert {}", layer.value, expert);
    for (const projection part : k_parts) {
      if (!has(model, part)) {
        found.experts.emplace_back();
        continue;
      }
      auto matrix = find_matrix(
          shards, naming.scheme, place, part == projection::down ? narrowing : widening,
          naming.scheme.codes,
          [&](std::string_view end) { return naming.split_name(layer.value, expert, part, end); });
      if (!matrix) return unexpected_error(std::move(matrix.error()));
      found.experts.push_back(*matrix);
    }
  }
  return found;
}

expected<void> find_shared(const model_description& model, const tensor_naming& naming,
                           const shard_set& shards, layer_id layer, layer_tensors& into,
                           std::string& refusal) {
  if (model.shared.intermediate_size == 0 || !refusal.empty()) return {};
  const std::uint64_t hidden = model.hidden_size;
  const std::uint64_t size = model.shared.intermediate_size;
  const std::string place = fmt::format("layer {} shared experts", layer.value);
  const bool quantised = model.format.quant != quant_kind::none;
  for (const projection part : k_parts) {
    if (!has(model, part)) continue;
    const auto name_of = [&](std::string_view end) {
      return naming.shared_name(layer.value, part, end);
    };
    if (quantised) {
      const tensor_place plain = shards.find(name_of(".weight"));
      if (plain.tensor != nullptr && plain.tensor->type->name != naming.scheme.codes_type) {
        refusal = fmt::format("they are {} where the routed experts are {}",
                              plain.tensor->type->name, quant_name(model.format.quant));
        return {};
      }
    }
    // Packed tensors' names may lack an ending; the shared experts' never do.
    const std::string_view codes = quantised ? naming.scheme.codes : std::string_view(".weight");
    const bool down = part == projection::down;
    auto matrix = find_matrix(
        shards, naming.scheme, place,
        want_of(model, naming.scheme, down ? hidden : size, down ? size : hidden), codes, name_of);
    if (!matrix) return unexpected_error(std::move(matrix.error()));
    into.shared[index_of(part)] = *matrix;
  }
  return {};
}

namespace {

// Whether a tensor changes which experts are chosen, or how, in a way that this family has not: in
// the router's own module, or under a name that selection biases have elsewhere. Left alone it
// would be lost in silence.
bool is_beside_router(const tensor_names& names, std::string_view rest) {
  const std::string_view module = names.router.substr(0, names.router.rfind('.') + 1);
  return (!module.empty() && rest.starts_with(module)) ||
         rest.ends_with(".e_score_correction_bias") || rest.ends_with(".expert_bias");
}

}  // namespace

expected<void> check_surplus(const model_description& model, const tensor_naming& naming,
                             const shard_set& shards, const std::vector<layer_tensors>& wanted) {
  std::unordered_set<const tensor_info*> known;
  const auto know = [&](const matrix_tensors& matrix) {
    for (const tensor_place& place :
         {matrix.codes, matrix.scales, matrix.second, matrix.input_scale, matrix.stored_shape})
      known.insert(place.tensor);
  };
  for (const layer_tensors& layer : wanted) {
    for (const matrix_tensors& matrix : layer.experts) know(matrix);
    for (const tensor_place& bias : layer.biases) known.insert(bias.tensor);
  }
  const tensor_names& names = *naming.names;
  for (const tensor_place& place : shards.tensors()) {
    std::string_view rest = place.tensor->name;
    if (!rest.starts_with(naming.stem)) continue;
    rest.remove_prefix(naming.stem.size());
    const auto layer = take_number(rest);
    // Layers behind the last one predict further tokens; they are no part of this model.
    if (!layer || *layer >= model.layers_total || known.contains(place.tensor)) continue;
    if (rest == names.router || rest == names.router_bias || rest == names.selection_bias ||
        rest == names.token_table || rest == names.expert_scale || rest == names.shared_gate)
      continue;
    const std::string where = fmt::format("layer {} {}", *layer, printable(place.tensor->name));
    const bool dense = moe_index(model, layer_id(static_cast<std::uint16_t>(*layer))) < 0;
    if (rest.starts_with(names.experts)) {
      rest.remove_prefix(names.experts.size());
      const auto expert = take_number(rest);
      // The transformers library writes tensors of identity experts, which nobody computes with.
      if (!dense && expert && *expert >= model.experts && *expert < model.columns()) continue;
      return fail(reason::weight_mismatch, where, "a tensor",
                  dense ? "none, as config.json makes this layer dense"
                  : expert && *expert >= model.experts
                      ? fmt::format("experts 0 to {} only", model.experts - 1)
                      : "none of this name");
    }
    if (!dense && is_beside_router(names, rest))
      return fail(reason::weight_mismatch, where, "a tensor",
                  fmt::format("none of this name beside the router of {}", model.model_type));
    if (!names.shared.empty() && rest.starts_with(names.shared) &&
        model.shared.intermediate_size == 0 && !dense)
      return fail(reason::weight_mismatch, where, "a tensor",
                  "none, as config.json has no shared experts");
  }
  return {};
}

}  // namespace moetier::workers
