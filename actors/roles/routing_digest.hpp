#pragma once
// One number for all that chooses experts in a model's files: the routers' matrices and biases, the
// selection biases, scales and token tables. A restarted coordinator refuses to go on with others
// than its durable record was made with. Reads every router once. Thread: any.

#include <cstdint>

#include "schemas/model/routing_tables.hpp"
#include "workers/weights/checkpoint.hpp"

namespace moetier::roles {

// Requires: `files` was opened with routers.
expected<std::uint64_t> routing_digest(const workers::checkpoint& files,
                                       const routing_tables& tables);

}  // namespace moetier::roles
