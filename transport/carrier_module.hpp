#pragma once
// The one symbol that a carrier module exports, and where modules are found. A module is built with
// the program that loads it, from the same sources; the number refuses one that was not. Called by
// open_carrier() alone. Thread: any.

#include <cstdint>
#include <string>
#include <vector>

#include "transport/communication.hpp"

namespace moetier::transport {

// Changes whenever communication.hpp or error.hpp changes in a way that a compiler sees.
inline constexpr std::uint32_t k_carrier_module_version = 3;
inline constexpr const char* k_carrier_module_symbol = "moetier_carrier_module_open";

// The new carrier, owned by the caller; or nullptr and the whole sentence of its error in `why`.
using carrier_module_open = Communication*(std::uint32_t version, const carrier_options& options,
                                           std::string& why);

// Folders in which modules are looked for, in order: that of the library or program which holds
// this code, ../lib and ../lib/moetier beside it, then those of MOETIER_MODULE_PATH
// (colon-separated).
std::vector<std::string> module_folders();

}  // namespace moetier::transport
