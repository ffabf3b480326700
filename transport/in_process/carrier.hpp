#pragma once
// The carrier whose members are threads of one process: one object is one exchange hub. It is the
// bit reference for every other carrier and the one that tests put faults into. Thread: any;
// members by the rules of their halves.

#include <memory>

#include "transport/communication.hpp"
#include "transport/in_process/fault_hooks.hpp"

namespace moetier::transport {

// `hooks` (nullptr in the product) must outlive the carrier and its members.
std::unique_ptr<Communication> make_in_process(const carrier_options& options,
                                               fault_hooks* hooks = nullptr);

}  // namespace moetier::transport
