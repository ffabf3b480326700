#include "workers/weights/checkpoint.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/core.h>

#include "schemas/base/assert.hpp"
#include "schemas/base/checksum.hpp"
#include "schemas/model/config.hpp"
#include "workers/weights/expert_finite.hpp"
#include "workers/weights/matrix_reader.hpp"
#include "workers/weights/routing_reader.hpp"
#include "workers/weights/tensor_floats.hpp"

namespace moetier::workers {
namespace {

// Whether the shared experts can be cut into pieces of one expert's size; else why not.
std::string cut_refusal(const model_description& model) {
  const std::uint32_t size = model.shared.intermediate_size;
  if (size == 0) return {};
  const quant_kind quant = model.format.quant;
  if (!fits_groups(quant, size))
    return fmt::format("their size {} is no multiple of the {} columns of a group", size,
                       group_columns(quant));
  if (quant == quant_kind::fp8_block && size > model.intermediate_size &&
      model.intermediate_size % group_columns(quant) != 0)
    return fmt::format("pieces of {} rows do not begin on a block", model.intermediate_size);
  return {};
}

}  // namespace

checkpoint::checkpoint(model_description model, stored_form form, std::unique_ptr<shard_set> shards,
                       const checkpoint_options& options)
    : options_(options),
      model_(std::move(model)),
      form_(std::move(form)),
      shards_(std::move(shards)),
      naming_(find_naming(model_, form_, *shards_)),
      shared_refusal_(form_.shared_refusal) {}

expected<std::unique_ptr<checkpoint>> checkpoint::open(const std::string& directory,
                                                       const checkpoint_options& options) {
  auto reading = read_config_and_form(fmt::format("{}/config.json", directory));
  if (!reading) return unexpected_error(std::move(reading.error()));
  auto shards = shard_set::open(directory);
  if (!shards) return unexpected_error(std::move(shards.error()));
  std::unique_ptr<checkpoint> opened(new checkpoint(
      std::move(reading->model), std::move(reading->form), std::move(*shards), options));
  if (auto found = opened->find_tensors(); !found)
    return unexpected_error(std::move(found.error()));
  if (!options.routers) return opened;
  if (auto read = opened->read_routers(); !read) return unexpected_error(std::move(read.error()));
  return opened;
}

// Finds them all and reads each once: for the digest, and because an element that is not finite,
// found later, would have every row's logits refused in its place.
expected<void> checkpoint::read_routers() {
  std::vector<std::uint64_t> parts;
  const auto add = [&](const auto& values) {
    parts.push_back(values.size());
    parts.push_back(xxh3_64(std::as_bytes(std::span(values))));
  };
  for (const layer_id layer : model_.moe_layers) {
    auto found = find_router(layer);
    if (!found) return unexpected_error(std::move(found.error()));
    routers_.push_back(*found);
    const auto router = read_router(layer);
    if (!router) return unexpected_error(router.error());
    const std::string place = fmt::format("layer {} router", layer.value);
    if (auto finite = check_finite(*found, place, router->bytes); !finite) return finite;
    parts.push_back(static_cast<std::uint64_t>(router->element));
    add(router->bytes);
    add(router->bias);
  }
  routers_digest_ = xxh3_64(std::as_bytes(std::span(parts)));
  return {};
}

expected<void> checkpoint::find_tensors() {
  if (shared_refusal_.empty()) shared_refusal_ = cut_refusal(model_);
  for (const layer_id layer : model_.moe_layers) {
    auto found = find_layer(model_, naming_, *shards_, layer);
    if (!found) return unexpected_error(std::move(found.error()));
    if (auto shared = find_shared(model_, naming_, *shards_, layer, *found, shared_refusal_);
        !shared)
      return shared;
    layers_.push_back(std::move(*found));
  }
  // The fingerprint does not cover the count: it says what this tier can do, not what the model is.
  if (!shared_refusal_.empty()) model_.shared.count = 0;
  return check_surplus(model_, naming_, *shards_, layers_);
}

std::size_t checkpoint::projection_bytes() const noexcept {
  return std::max(
      matrix_form_of(model_.format, model_.intermediate_size, model_.hidden_size).bytes,
      matrix_form_of(model_.format, model_.hidden_size, model_.intermediate_size).bytes);
}

expected<void> checkpoint::load(layer_id layer, expert_id expert, const expert_buffers& into) {
  const int layer_index = moe_index(model_, layer);
  MOETIER_ASSERT(layer_index >= 0);
  MOETIER_ASSERT(expert.value < model_.experts + model_.shared.count);
  if (auto done = read_expert(model_, naming_, layers_[static_cast<std::size_t>(layer_index)],
                              layer, expert.value, into);
      !done)
    return done;
  // Quantised matrices were checked with their scales.
  if (model_.format.quant != quant_kind::none || options_.serve_nonfinite) return {};
  return check_expert_finite(model_.format.stored, layer, expert, into);
}

expected<tensor_place> checkpoint::find_router(layer_id layer) const {
  wanted_tensor wanted{fmt::format("layer {} router", layer.value),
                       naming_.in_layer(layer.value, naming_.names->router),
                       float_types(),
                       {{model_.columns(), model_.router_width}}};
  if (model_.format.quant == quant_kind::none)
    wanted.types.insert(wanted.types.begin(), tensor_type_of(model_.format.stored).name);
  return find_wanted(*shards_, wanted);
}

expected<router_matrix> checkpoint::read_router(layer_id layer) const {
  const int layer_index = moe_index(model_, layer);
  MOETIER_ASSERT(layer_index >= 0);
  MOETIER_ASSERT(!routers_.empty());
  const tensor_place& from = routers_[static_cast<std::size_t>(layer_index)];
  router_matrix matrix{.element = from.tensor->type->element,
                       .bytes = std::vector<std::byte>(from.tensor->bytes()),
                       .bias = {}};
  if (auto done = from.file->read(*from.tensor, matrix.bytes); !done)
    return unexpected_error(std::move(done.error()));
  if (naming_.names->router_bias.empty()) return matrix;
  const std::string place = fmt::format("layer {} router", layer.value);
  auto bias = find_wanted(*shards_, {place,
                                     naming_.in_layer(layer.value, naming_.names->router_bias),
                                     float_types(),
                                     {{model_.columns()}}});
  if (!bias) return unexpected_error(std::move(bias.error()));
  auto values = read_floats(*bias, place);
  if (!values) return unexpected_error(std::move(values.error()));
  matrix.bias = std::move(*values);
  return matrix;
}

expected<routing_tables> checkpoint::read_routing_tables() const {
  routing_tables tables;
  for (std::size_t l = 0; l < model_.moe_layers.size(); ++l) {
    auto layer = read_layer_routing(model_, form_, naming_, *shards_, l);
    if (!layer) return unexpected_error(std::move(layer.error()));
    tables.layers.push_back(std::move(*layer));
  }
  return tables;
}

}  // namespace moetier::workers
