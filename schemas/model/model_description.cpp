#include "schemas/model/model_description.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "schemas/base/checksum.hpp"

namespace moetier {

int moe_index(const model_description& model, layer_id layer) noexcept {
  const auto at = std::lower_bound(model.moe_layers.begin(), model.moe_layers.end(), layer);
  if (at == model.moe_layers.end() || *at != layer) return -1;
  return static_cast<int>(at - model.moe_layers.begin());
}

std::uint64_t fingerprint_of(const model_description& model) {
  // Part of the protocol: another order, name or separator is another fingerprint everywhere.
  fmt::memory_buffer text;
  fmt::format_to(
      std::back_inserter(text),
      "moetier model 1\nmodel_type={}\nhidden_size={}\nintermediate_size={}\nexperts={}\n"
      "top_k={}\nlayers_total={}\nrouting={}\nactivation={}\nstored={}\nmoe_layers=",
      model.model_type, model.hidden_size, model.intermediate_size, model.experts, model.top_k,
      model.layers_total, static_cast<unsigned>(model.routing),
      static_cast<unsigned>(model.activation), dtype_name(model.stored));
  for (const layer_id layer : model.moe_layers)
    fmt::format_to(std::back_inserter(text), "{},", layer.value);
  return first_64_bits(sha256(std::as_bytes(std::span(text.data(), text.size()))));
}

}  // namespace moetier
