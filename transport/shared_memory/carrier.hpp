#pragma once
// The carrier between processes of one host that run as one user: memory that both map. Opened
// after a block of this process could be mapped a second time. Thread: any.

#include <memory>

#include "transport/communication.hpp"

namespace moetier::transport {

expected<std::unique_ptr<Communication>> make_shared_memory(const carrier_options& options);

}  // namespace moetier::transport
