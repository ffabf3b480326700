#include "workers/weights/routing_reader.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "schemas/file/printable.hpp"
#include "workers/weights/tensor_floats.hpp"

namespace moetier::workers {
namespace {

struct layer_files {
  const tensor_naming& naming;
  const shard_set& shards;
  std::uint32_t layer;
  std::string place;
};

expected<void> read_vector(const layer_files& files, std::string_view rest,
                           std::vector<shape> shapes, std::vector<float>& into) {
  auto place = find_wanted(files.shards, {files.place, files.naming.in_layer(files.layer, rest),
                                          float_types(), std::move(shapes)});
  if (!place) return unexpected_error(std::move(place.error()));
  auto values = read_floats(*place, files.place);
  if (!values) return unexpected_error(std::move(values.error()));
  into = std::move(*values);
  return {};
}

// A bias that config.json switches off would be lost in silence.
expected<void> check_absent(const layer_files& files, std::string_view rest) {
  const std::string name = files.naming.in_layer(files.layer, rest);
  if (files.shards.find(name).tensor == nullptr) return {};
  return fail(reason::weight_mismatch, fmt::format("{} {}", files.place, printable(name)),
              "a tensor", "none, as config.json has no selection bias");
}

std::int64_t id_at(const std::vector<std::byte>& bytes, std::size_t width, std::size_t index) {
  if (width == sizeof(std::int32_t)) {
    std::int32_t id = 0;
    std::memcpy(&id, bytes.data() + index * width, width);
    return id;
  }
  std::int64_t id = 0;
  std::memcpy(&id, bytes.data() + index * width, width);
  return id;
}

expected<void> read_table(const layer_files& files, const model_description& model,
                          layer_routing& into) {
  const std::string name = files.naming.in_layer(files.layer, files.naming.names->token_table);
  const std::string place = fmt::format("{} {}", files.place, printable(name));
  const tensor_place at = files.shards.find(name);
  const std::string wanted = fmt::format("I64 or I32 [token ids, {}]", model.top_k);
  if (at.tensor == nullptr) return fail(reason::weight_mismatch, place, "no tensor", wanted);
  const tensor_info& tensor = *at.tensor;
  const bool integers = tensor.type->element == dtype::i64 || tensor.type->element == dtype::i32;
  if (!integers || tensor.rank != 2 || tensor.sizes[1] != model.top_k || tensor.sizes[0] == 0)
    return fail(reason::weight_mismatch, place, shape_text(*tensor.type, tensor.shape()), wanted);
  std::vector<std::byte> bytes(tensor.bytes());
  if (auto done = at.file->read(tensor, bytes); !done) return done;
  const std::size_t width = tensor.type->bits / 8;
  const std::size_t k = model.top_k;
  into.table_rows = static_cast<std::uint32_t>(tensor.sizes[0]);
  into.table.resize(std::size_t{into.table_rows} * k);
  for (std::size_t i = 0; i < into.table.size(); ++i) {
    const std::int64_t id = id_at(bytes, width, i);
    if (id < 0 || id >= static_cast<std::int64_t>(model.experts))
      return fail(reason::weight_mismatch, place, fmt::format("expert {} in row {}", id, i / k),
                  fmt::format("experts 0 to {}", model.experts - 1));
    into.table[i] = static_cast<std::uint16_t>(id);
    const auto row = into.table.begin() + static_cast<std::ptrdiff_t>(i / k * k);
    const auto here = into.table.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(row, here, into.table[i]) != here)
      return fail(reason::weight_mismatch, place,
                  fmt::format("expert {} twice in row {}", id, i / k), "every expert once");
  }
  return {};
}

}  // namespace

expected<layer_routing> read_layer_routing(const model_description& model, const stored_form& form,
                                           const tensor_naming& naming, const shard_set& shards,
                                           std::size_t moe_index) {
  const std::uint32_t number = model.moe_layers[moe_index].value;
  const layer_files files{naming, shards, number, fmt::format("layer {} router", number)};
  const std::uint64_t columns = model.columns();
  layer_routing routing;
  expected<void> done;
  if (!form.hashed.empty() && form.hashed[moe_index]) {
    done = read_table(files, model, routing);
  } else if (form.selection_bias) {
    done =
        read_vector(files, naming.names->selection_bias, {{columns}, {1, columns}}, routing.bias);
  } else if (!naming.names->selection_bias.empty() && form.hashed.empty()) {
    done = check_absent(files, naming.names->selection_bias);
  }
  if (done && !naming.names->expert_scale.empty())
    done = read_vector(files, naming.names->expert_scale, {{model.experts}}, routing.expert_scale);
  if (done && model.shared.gated)
    done = read_vector(files, naming.names->shared_gate,
                       {{1, model.router_width}, {model.router_width}}, routing.shared_gate);
  if (!done) return unexpected_error(std::move(done.error()));
  return routing;
}

}  // namespace moetier::workers
