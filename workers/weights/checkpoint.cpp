#include "workers/weights/checkpoint.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "schemas/base/assert.hpp"
#include "schemas/file/printable.hpp"
#include "schemas/model/config.hpp"

namespace moetier::workers {
namespace {

constexpr std::array k_parts{projection::gate, projection::up, projection::down};

// The layer and expert, then the tensor's name: how every refusal begins.
std::string place_text(std::uint32_t layer, std::uint32_t expert, std::string_view tensor) {
  return fmt::format("layer {} expert {} {}", layer, expert, printable(tensor));
}

std::array<std::uint64_t, 2> expert_shape(const model_description& model, projection part) {
  const std::uint64_t hidden = model.hidden_size;
  const std::uint64_t inner = model.intermediate_size;
  return part == projection::down ? std::array{hidden, inner} : std::array{inner, hidden};
}

std::string expected_text(const model_description& model, projection part) {
  return shape_text(tensor_type_of(model.format.stored), expert_shape(model, part));
}

expected<void> check_expert(const model_description& model, const tensor_role& role,
                            const tensor_info& tensor) {
  const auto shape = expert_shape(model, role.part);
  if (tensor.type->element == model.format.stored && std::ranges::equal(tensor.shape(), shape))
    return {};
  return fail(reason::weight_mismatch, place_text(role.layer, role.expert, tensor.name),
              shape_text(*tensor.type, tensor.shape()), expected_text(model, role.part));
}

expected<void> check_router(const model_description& model, const tensor_role& role,
                            const tensor_info& tensor) {
  const std::array<std::uint64_t, 2> shape{model.experts, model.hidden_size};
  const dtype element = tensor.type->element;
  if ((element == model.format.stored || element == dtype::f32) &&
      std::ranges::equal(tensor.shape(), shape))
    return {};
  return fail(reason::weight_mismatch,
              fmt::format("layer {} router {}", role.layer, printable(tensor.name)),
              shape_text(*tensor.type, tensor.shape()),
              shape_text(tensor_type_of(model.format.stored), shape));
}

}  // namespace

checkpoint::checkpoint(model_description model, std::unique_ptr<shard_set> shards,
                       const dialect& names)
    : model_(std::move(model)), shards_(std::move(shards)), names_(names), stem_(find_stem()) {}

expected<std::unique_ptr<checkpoint>> checkpoint::open(const std::string& directory,
                                                       const checkpoint_options& options) {
  auto model = read_config(fmt::format("{}/config.json", directory));
  if (!model) return unexpected_error(std::move(model.error()));
  const dialect* const names = find_dialect(model->model_type);
  if (names == nullptr)
    return fail(reason::model_unsupported, "model_type", model->model_type,
                "a family with a dialect");
  auto shards = shard_set::open(directory);
  if (!shards) return unexpected_error(std::move(shards.error()));
  std::unique_ptr<checkpoint> opened(new checkpoint(std::move(*model), std::move(*shards), *names));
  for (const tensor_place& place : opened->shards_->tensors()) {
    if (auto fine = opened->check(*place.tensor, options.routers); !fine)
      return unexpected_error(std::move(fine.error()));
  }
  for (const layer_id layer : opened->model_.moe_layers) {
    if (auto found = opened->find_experts(layer); !found)
      return unexpected_error(std::move(found.error()));
    if (!options.routers) continue;
    if (auto found = opened->find_router(layer); !found)
      return unexpected_error(std::move(found.error()));
  }
  return opened;
}

std::size_t checkpoint::projection_bytes() const noexcept {
  return std::size_t{model_.hidden_size} * model_.intermediate_size *
         dtype_bytes(model_.format.stored);
}

expected<void> checkpoint::load(layer_id layer, expert_id expert, const expert_buffers& into) {
  const int layer_index = moe_index(model_, layer);
  MOETIER_ASSERT(layer_index >= 0);
  MOETIER_ASSERT(expert.value < model_.experts);
  const std::array buffers{into.gate, into.up, into.down};
  const std::size_t first =
      (static_cast<std::size_t>(layer_index) * model_.experts + expert.value) * k_projections;
  for (std::size_t part = 0; part < k_projections; ++part) {
    const tensor_place& from = experts_[first + part];
    if (auto done = from.file->read(*from.tensor, buffers[part]); !done) return done;
  }
  return {};
}

expected<router_matrix> checkpoint::read_router(layer_id layer) const {
  const int layer_index = moe_index(model_, layer);
  MOETIER_ASSERT(layer_index >= 0);
  MOETIER_ASSERT(!routers_.empty());
  const tensor_place& from = routers_[static_cast<std::size_t>(layer_index)];
  router_matrix matrix{.element = from.tensor->type->element,
                       .bytes = std::vector<std::byte>(from.tensor->bytes())};
  if (auto done = from.file->read(*from.tensor, matrix.bytes); !done)
    return unexpected_error(std::move(done.error()));
  return matrix;
}

// The stem under which the files name an expert; the first one where none does, so that the
// refusal that follows names what was looked for.
std::string_view checkpoint::find_stem() const noexcept {
  for (const std::string_view stem : names_.stems) {
    for (const tensor_place& place : shards_->tensors()) {
      if (role_of(names_, stem, place.tensor->name).what == tensor_role::kind::expert) return stem;
    }
  }
  return names_.stems.front();
}

// Whether a tensor may stand in these files: no surplus, no wrong shape.
expected<void> checkpoint::check(const tensor_info& tensor, bool routers) const {
  using kind = tensor_role::kind;
  const tensor_role role = role_of(names_, stem_, tensor.name);
  // Layers behind the last one predict further tokens; they are no part of this model.
  if (role.what == kind::foreign || role.layer >= model_.layers_total) return {};
  const bool dense = moe_index(model_, layer_id(static_cast<std::uint16_t>(role.layer))) < 0;
  if (role.what == kind::router) {
    if (!routers || dense) return {};
    return check_router(model_, role, tensor);
  }
  if (role.what == kind::unknown_expert)
    return fail(reason::weight_mismatch,
                fmt::format("layer {} {}", role.layer, printable(tensor.name)),
                "a tensor of an unknown name",
                fmt::format("{{expert}}.{} only", fmt::join(names_.projections, ", .")));
  if (dense)
    return fail(reason::weight_mismatch, place_text(role.layer, role.expert, tensor.name),
                "a tensor", "none, as config.json makes this layer dense");
  if (role.expert >= model_.experts)
    return fail(reason::weight_mismatch, place_text(role.layer, role.expert, tensor.name),
                "a tensor", fmt::format("experts 0 to {} only", model_.experts - 1));
  return check_expert(model_, role, tensor);
}

// Appends a layer's tensors. What config.json claims costs no memory: it ends at the first tensor
// that is not there.
expected<void> checkpoint::find_experts(layer_id layer) {
  for (std::uint32_t expert = 0; expert < model_.experts; ++expert) {
    std::array<std::string, k_projections> names;
    std::array<tensor_place, k_projections> places;
    for (std::size_t p = 0; p < k_projections; ++p) {
      names[p] = expert_tensor_name(names_, stem_, layer, expert, k_parts[p]);
      places[p] = shards_->find(names[p]);
    }
    const auto missing = std::ranges::find(places, nullptr, &tensor_place::tensor);
    if (missing != places.end()) {
      const auto p = static_cast<std::size_t>(missing - places.begin());
      const auto absent = std::ranges::count(places, nullptr, &tensor_place::tensor);
      return fail(reason::weight_mismatch, place_text(layer.value, expert, names[p]),
                  fmt::format("no tensor ({} of the expert's {} are there)",
                              static_cast<std::ptrdiff_t>(k_projections) - absent, k_projections),
                  expected_text(model_, k_parts[p]));
    }
    experts_.insert(experts_.end(), places.begin(), places.end());
  }
  return {};
}

expected<void> checkpoint::find_router(layer_id layer) {
  const std::string name = router_tensor_name(names_, stem_, layer);
  const tensor_place place = shards_->find(name);
  if (place.tensor == nullptr)
    return fail(reason::weight_mismatch, fmt::format("layer {} router {}", layer.value, name),
                "no tensor", "the router's matrix");
  routers_.push_back(place);
  return {};
}

}  // namespace moetier::workers
