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
  return shape_text(tensor_type_of(model.stored), expert_shape(model, part));
}

expected<void> check_expert(const model_description& model, const tensor_role& role,
                            const tensor_info& tensor) {
  const auto shape = expert_shape(model, role.part);
  if (tensor.type->element == model.stored && std::ranges::equal(tensor.shape(), shape)) return {};
  return fail(reason::weight_mismatch, place_text(role.layer, role.expert, tensor.name),
              shape_text(*tensor.type, tensor.shape()), expected_text(model, role.part));
}

expected<void> check_router(const model_description& model, const tensor_role& role,
                            const tensor_info& tensor) {
  const std::array<std::uint64_t, 2> shape{model.experts, model.hidden_size};
  const dtype element = tensor.type->element;
  if ((element == model.stored || element == dtype::f32) &&
      std::ranges::equal(tensor.shape(), shape))
    return {};
  return fail(reason::weight_mismatch,
              fmt::format("layer {} router {}", role.layer, printable(tensor.name)),
              shape_text(*tensor.type, tensor.shape()),
              shape_text(tensor_type_of(model.stored), shape));
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
  if (auto found = opened->find_tensors(options.routers); !found)
    return unexpected_error(std::move(found.error()));
  return opened;
}

std::size_t checkpoint::projection_bytes() const noexcept {
  return std::size_t{model_.hidden_size} * model_.intermediate_size * dtype_bytes(model_.stored);
}

expected<void> checkpoint::load(layer_id layer, expert_id expert, const expert_buffers& into) {
  const int layer_index = moe_index(model_, layer);
  MOETIER_ASSERT(layer_index >= 0);
  MOETIER_ASSERT(expert.value < model_.experts);
  const std::array buffers{into.gate, into.up, into.down};
  for (std::size_t part = 0; part < k_projections; ++part) {
    const place& from =
        experts_[place_index(static_cast<std::size_t>(layer_index), expert.value, part)];
    if (auto done = from.file->read(*from.tensor, buffers[part]); !done) return done;
  }
  return {};
}

expected<router_matrix> checkpoint::read_router(layer_id layer) const {
  const int layer_index = moe_index(model_, layer);
  MOETIER_ASSERT(layer_index >= 0);
  MOETIER_ASSERT(!routers_.empty());
  const place& from = routers_[static_cast<std::size_t>(layer_index)];
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
    for (const auto& file : shards_->shards()) {
      for (const tensor_info& tensor : file->header().tensors) {
        if (role_of(names_, stem, tensor.name).what == tensor_role::kind::expert) return stem;
      }
    }
  }
  return names_.stems.front();
}

expected<void> checkpoint::find_tensors(bool routers) {
  experts_.resize(model_.moe_layers.size() * model_.experts * k_projections);
  if (routers) routers_.resize(model_.moe_layers.size());
  for (const auto& file : shards_->shards()) {
    for (const tensor_info& tensor : file->header().tensors) {
      if (auto fine = take(*file, tensor, routers); !fine) return fine;
    }
  }
  return check_complete(routers);
}

expected<void> checkpoint::take(const tensor_file& file, const tensor_info& tensor, bool routers) {
  using kind = tensor_role::kind;
  const tensor_role role = role_of(names_, stem_, tensor.name);
  // Layers behind the last one predict further tokens; they are no part of this model.
  if (role.what == kind::foreign || role.layer >= model_.layers_total) return {};
  const int layer_index = moe_index(model_, layer_id(static_cast<std::uint16_t>(role.layer)));
  if (role.what == kind::router) {
    if (!routers || layer_index < 0) return {};
    routers_[static_cast<std::size_t>(layer_index)] = {&file, &tensor};
    return check_router(model_, role, tensor);
  }
  if (role.what == kind::unknown_expert)
    return fail(reason::weight_mismatch,
                fmt::format("layer {} {}", role.layer, printable(tensor.name)),
                "a tensor of an unknown name",
                fmt::format("{{expert}}.{} only", fmt::join(names_.projections, ", .")));
  if (layer_index < 0)
    return fail(reason::weight_mismatch, place_text(role.layer, role.expert, tensor.name),
                "a tensor", "none, as config.json makes this layer dense");
  if (role.expert >= model_.experts)
    return fail(reason::weight_mismatch, place_text(role.layer, role.expert, tensor.name),
                "a tensor", fmt::format("experts 0 to {} only", model_.experts - 1));
  experts_[place_index(static_cast<std::size_t>(layer_index), role.expert,
                       static_cast<std::size_t>(role.part))] = {&file, &tensor};
  return check_expert(model_, role, tensor);
}

expected<void> checkpoint::check_complete(bool routers) const {
  for (std::size_t l = 0; l < model_.moe_layers.size(); ++l) {
    const layer_id layer = model_.moe_layers[l];
    if (routers && routers_[l].tensor == nullptr)
      return fail(
          reason::weight_mismatch,
          fmt::format("layer {} router {}", layer.value, router_tensor_name(names_, stem_, layer)),
          "no tensor", "the router's matrix");
    for (std::uint32_t expert = 0; expert < model_.experts; ++expert) {
      const auto parts = std::span(experts_).subspan(place_index(l, expert, 0), k_projections);
      const auto present =
          std::ranges::count_if(parts, [](const place& p) { return p.tensor != nullptr; });
      if (present == k_projections) continue;
      const auto missing = static_cast<std::size_t>(
          std::ranges::find(parts, nullptr, &place::tensor) - parts.begin());
      return fail(
          reason::weight_mismatch,
          place_text(layer.value, expert,
                     expert_tensor_name(names_, stem_, layer, expert, k_parts[missing])),
          fmt::format("no tensor ({} of the expert's {} are there)", present, k_projections),
          expected_text(model_, k_parts[missing]));
    }
  }
  return {};
}

std::size_t checkpoint::place_index(std::size_t layer_index, std::uint32_t expert,
                                    std::size_t part) const noexcept {
  return (layer_index * model_.experts + expert) * k_projections + part;
}

}  // namespace moetier::workers
