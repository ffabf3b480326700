#include "actors/roles/routing_digest.hpp"

#include <span>
#include <vector>

#include "schemas/base/checksum.hpp"

namespace moetier::roles {

std::uint64_t routing_digest(std::uint64_t routers, const routing_tables& tables) {
  std::vector<std::uint64_t> parts{routers};
  const auto add = [&](const auto& values) {
    parts.push_back(values.size());
    parts.push_back(xxh3_64(std::as_bytes(std::span(values))));
  };
  for (const layer_routing& layer : tables.layers) {
    add(layer.bias);
    add(layer.expert_scale);
    add(layer.table);
    add(layer.table_weights);
    add(layer.shared_gate);
  }
  return xxh3_64(std::as_bytes(std::span(parts)));
}

}  // namespace moetier::roles
