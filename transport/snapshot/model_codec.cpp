#include "transport/snapshot/model_codec.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/routing/route.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::transport {
namespace {

unexpected_error refuse(const char* what) { return fail(reason::frame_malformed, what); }

template <class List, class T>
void put(List out, const std::vector<T>& values) {
  for (unsigned i = 0; i < out.size(); ++i) out.set(i, values[i]);
}

template <class T, class List>
std::vector<T> taken(List in) {
  std::vector<T> values;
  values.reserve(in.size());
  for (const auto value : in) values.push_back(value);
  return values;
}

bool all_finite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

// Clamps by layer: none, or one per layer, each 0 or above.
bool are_limits(const std::vector<float>& limits, std::size_t layers) {
  return (limits.empty() || limits.size() == layers) && all_finite(limits) &&
         std::all_of(limits.begin(), limits.end(), [](float v) { return v >= 0; });
}

expected<void> check_numbers(const model_description& m) {
  if (m.hidden_size == 0 || m.hidden_size > k_hidden_max) return refuse("snapshot: hidden size");
  if (m.intermediate_size == 0 || m.intermediate_size > k_intermediate_max)
    return refuse("snapshot: intermediate size");
  if (static_cast<std::uint8_t>(m.format.stored) > static_cast<std::uint8_t>(dtype::bf16))
    return refuse("snapshot: stored dtype");
  if (static_cast<std::uint8_t>(m.format.quant) >= k_quant_kinds)
    return refuse("snapshot: weight format");
  if (static_cast<std::uint8_t>(m.weight_at) > 1) return refuse("snapshot: weight point");
  if (m.weight_at == weight_point::input && m.top_k != 1)
    return refuse("snapshot: a weight on the input needs one expert a token");
  if (m.router_width == 0 || m.router_width > k_hidden_max) return refuse("snapshot: router width");
  if (m.experts == 0 || m.experts > k_experts_max || m.routing.identity_experts > k_experts_max)
    return refuse("snapshot: number of experts");
  if (m.shared.intermediate_size > k_intermediate_max || m.shared.count > k_top_k_max)
    return refuse("snapshot: shared experts");
  const activation_constants& c = m.activation.constants;
  if (static_cast<std::uint8_t>(m.activation.kind) >= k_activation_kinds ||
      !all_finite({c.alpha, c.beta, c.limit}))
    return refuse("snapshot: activation");
  if (!are_limits(m.limits, m.moe_layers.size()) ||
      !are_limits(m.shared_limits, m.moe_layers.size()))
    return refuse("snapshot: limits");
  return {};
}

}  // namespace

void write_model(schema::Snapshot::Model::Builder out, const model_description& m) {
  out.setModelType(m.model_type);
  out.setHiddenSize(m.hidden_size);
  out.setIntermediateSize(m.intermediate_size);
  out.setExperts(m.experts);
  out.setTopK(m.top_k);
  out.setLayersTotal(m.layers_total);
  auto layers = out.initMoeLayers(static_cast<unsigned>(m.moe_layers.size()));
  for (unsigned i = 0; i < layers.size(); ++i) layers.set(i, m.moe_layers[i].value);
  out.setRouting(static_cast<std::uint8_t>(m.routing.method));
  out.setRenormalise(m.routing.renormalise);
  out.setScaling(m.routing.scaling);
  out.setEpsilon(m.routing.epsilon);
  out.setPower(m.routing.power);
  out.setGroups(m.routing.groups);
  out.setGroupsKept(m.routing.groups_kept);
  out.setIdentityExperts(m.routing.identity_experts);
  out.setActivation(static_cast<std::uint8_t>(m.activation.kind));
  out.setAlpha(m.activation.constants.alpha);
  out.setBeta(m.activation.constants.beta);
  out.setLimit(m.activation.constants.limit);
  put(out.initLimits(static_cast<unsigned>(m.limits.size())), m.limits);
  put(out.initSharedLimits(static_cast<unsigned>(m.shared_limits.size())), m.shared_limits);
  out.setQuant(static_cast<std::uint8_t>(m.format.quant));
  out.setStored(static_cast<std::uint8_t>(m.format.stored));
  out.setExpertBias(m.expert_bias);
  out.setWeightAt(static_cast<std::uint8_t>(m.weight_at));
  out.setSharedSize(m.shared.intermediate_size);
  out.setSharedCount(m.shared.count);
  out.setSharedGated(m.shared.gated);
  out.setRouterWidth(m.router_width);
  out.setRouterReadsHidden(m.router_reads_hidden);
  out.setFingerprint(m.fingerprint);
}

expected<model_description> read_model(schema::Snapshot::Model::Reader in) {
  if (in.getMoeLayers().size() > k_layers_max) return refuse("snapshot: too many layers");
  if (in.getLimits().size() > k_layers_max || in.getSharedLimits().size() > k_layers_max)
    return refuse("snapshot: limits");
  model_description m;
  m.model_type = in.getModelType().cStr();
  m.hidden_size = in.getHiddenSize();
  m.intermediate_size = in.getIntermediateSize();
  m.experts = in.getExperts();
  m.top_k = in.getTopK();
  m.layers_total = in.getLayersTotal();
  for (const std::uint16_t l : in.getMoeLayers()) {
    if (!m.moe_layers.empty() && l <= m.moe_layers.back().value)
      return refuse("snapshot: layers must rise");
    m.moe_layers.push_back(layer_id{l});
  }
  m.routing = {.method = static_cast<routing_method>(in.getRouting()),
               .renormalise = in.getRenormalise(),
               .scaling = in.getScaling(),
               .epsilon = in.getEpsilon(),
               .power = in.getPower(),
               .groups = in.getGroups(),
               .groups_kept = in.getGroupsKept(),
               .identity_experts = in.getIdentityExperts()};
  m.activation = {
      .kind = static_cast<activation_kind>(in.getActivation()),
      .constants = {.alpha = in.getAlpha(), .beta = in.getBeta(), .limit = in.getLimit()}};
  m.limits = taken<float>(in.getLimits());
  m.shared_limits = taken<float>(in.getSharedLimits());
  m.format = {.quant = static_cast<quant_kind>(in.getQuant()),
              .stored = static_cast<dtype>(in.getStored())};
  m.expert_bias = in.getExpertBias();
  m.weight_at = static_cast<weight_point>(in.getWeightAt());
  m.shared = {.intermediate_size = in.getSharedSize(),
              .count = in.getSharedCount(),
              .gated = in.getSharedGated()};
  m.router_width = in.getRouterWidth();
  m.router_reads_hidden = in.getRouterReadsHidden();
  m.fingerprint = in.getFingerprint();
  if (auto ok = check_numbers(m); !ok) return unexpected_error(ok.error());
  return m;
}

void write_tables(capnp::List<schema::Snapshot::LayerRouting>::Builder out,
                  const routing_tables& tables) {
  for (unsigned i = 0; i < out.size(); ++i) {
    const layer_routing& layer = tables.layers[i];
    put(out[i].initBias(static_cast<unsigned>(layer.bias.size())), layer.bias);
    put(out[i].initExpertScale(static_cast<unsigned>(layer.expert_scale.size())),
        layer.expert_scale);
    put(out[i].initTable(static_cast<unsigned>(layer.table.size())), layer.table);
    out[i].setTableRows(layer.table_rows);
    put(out[i].initTableWeights(static_cast<unsigned>(layer.table_weights.size())),
        layer.table_weights);
    put(out[i].initSharedGate(static_cast<unsigned>(layer.shared_gate.size())), layer.shared_gate);
  }
}

expected<routing_tables_ptr> read_tables(capnp::List<schema::Snapshot::LayerRouting>::Reader in,
                                         const model_description& model) {
  if (in.size() != model.moe_layers.size()) return refuse("snapshot: layers of the tables");
  const kernels::routing_params params{
      .rule = model.routing, .experts = model.experts, .top_k = model.top_k};
  auto tables = std::make_shared<routing_tables>();
  for (const auto layer : in) {
    layer_routing& l = tables->layers.emplace_back();
    l.bias = taken<float>(layer.getBias());
    l.expert_scale = taken<float>(layer.getExpertScale());
    l.table = taken<std::uint16_t>(layer.getTable());
    l.table_rows = layer.getTableRows();
    l.table_weights = taken<float>(layer.getTableWeights());
    l.shared_gate = taken<float>(layer.getSharedGate());
    if (auto ok = kernels::check_layer(params, l); !ok) return unexpected_error(ok.error());
    const bool gate_fits =
        model.shared.gated ? l.shared_gate.size() == model.hidden_size : l.shared_gate.empty();
    if (!gate_fits || !all_finite(l.shared_gate)) return refuse("snapshot: gate of shared experts");
  }
  return routing_tables_ptr(std::move(tables));
}

}  // namespace moetier::transport
