#pragma once
// One number for all that chooses experts in a model's files: the routers' matrices and biases, the
// selection biases, scales and token tables. A restarted coordinator refuses to go on with others
// than its durable record was made with. Thread: any (pure).

#include <cstdint>

#include "schemas/model/routing_tables.hpp"

namespace moetier::roles {

// `routers`: checkpoint::routers_digest().
std::uint64_t routing_digest(std::uint64_t routers, const routing_tables& tables);

}  // namespace moetier::roles
