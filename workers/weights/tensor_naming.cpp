#include "workers/weights/tensor_naming.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "schemas/file/printable.hpp"

namespace moetier::workers {
namespace {

bool any_under(const shard_set& shards, std::string_view prefix) {
  const auto all = shards.tensors();
  const auto at = std::ranges::lower_bound(
      all, prefix, {}, [](const tensor_place& p) { return std::string_view(p.tensor->name); });
  return at != all.end() && at->tensor->name.starts_with(prefix);
}

bool any_packed(const model_description& model, const tensor_naming& naming,
                const shard_set& shards) {
  if (naming.names->packed_as == packing::none) return false;
  if (naming.names->split[1].empty()) return true;
  const auto there = [&](layer_id layer) {
    return shards.find(naming.packed_name(layer.value, projection::down, naming.names->packed_end))
               .tensor != nullptr;
  };
  return std::ranges::any_of(model.moe_layers, there);
}

std::string wanted_text(const wanted_tensor& wanted) {
  const tensor_type* const type = find_tensor_type(wanted.types.front());
  return type == nullptr ? std::string(wanted.types.front())
                         : shape_text(*type, wanted.shapes.front());
}

}  // namespace

std::string tensor_naming::in_layer(std::uint32_t layer, std::string_view rest) const {
  return fmt::format("{}{}.{}", stem, layer, rest);
}

std::string tensor_naming::split_name(std::uint32_t layer, std::uint32_t expert, projection part,
                                      std::string_view ending) const {
  return fmt::format("{}{}.{}{}.{}{}", stem, layer, names->experts, expert,
                     names->split[static_cast<std::size_t>(part)], ending);
}

std::string tensor_naming::packed_name(std::uint32_t layer, projection part,
                                       std::string_view ending) const {
  return fmt::format("{}{}.{}{}{}", stem, layer, names->experts,
                     names->packed[static_cast<std::size_t>(part)], ending);
}

std::string tensor_naming::shared_name(std::uint32_t layer, projection part,
                                       std::string_view ending) const {
  return fmt::format("{}{}.{}{}{}", stem, layer, names->shared,
                     names->shared_split[static_cast<std::size_t>(part)], ending);
}

tensor_naming find_naming(const model_description& model, const stored_form& form,
                          const shard_set& shards) {
  const family& kin = *form.kin;
  for (const tensor_names* const names : {&kin.names, kin.other_names}) {
    if (names == nullptr) continue;
    for (const std::string_view stem : names->stems) {
      if (stem.empty()) continue;
      tensor_naming naming{.names = names, .stem = stem, .scheme = form.experts};
      for (const layer_id layer : model.moe_layers) {
        if (!any_under(shards, naming.in_layer(layer.value, names->experts))) continue;
        naming.packed = any_packed(model, naming, shards);
        return naming;
      }
    }
  }
  const tensor_names& first = kin.names;
  return {.names = &first,
          .stem = first.stems.front(),
          .packed = first.split[1].empty(),
          .scheme = form.experts};
}

expected<tensor_place> find_if_there(const shard_set& shards, const wanted_tensor& wanted) {
  const tensor_place place = shards.find(wanted.name);
  if (place.tensor == nullptr) return place;
  const bool typed =
      std::ranges::find(wanted.types, place.tensor->type->name) != wanted.types.end();
  const auto same = [&](const shape& one) {
    return std::ranges::equal(one, place.tensor->shape());
  };
  if (typed && std::ranges::any_of(wanted.shapes, same)) return place;
  return fail(reason::weight_mismatch, fmt::format("{} {}", wanted.place, printable(wanted.name)),
              shape_text(*place.tensor->type, place.tensor->shape()), wanted_text(wanted));
}

expected<tensor_place> find_wanted(const shard_set& shards, const wanted_tensor& wanted) {
  auto place = find_if_there(shards, wanted);
  if (place && place->tensor == nullptr)
    return fail(reason::weight_mismatch, fmt::format("{} {}", wanted.place, printable(wanted.name)),
                "no tensor", wanted_text(wanted));
  return place;
}

}  // namespace moetier::workers
