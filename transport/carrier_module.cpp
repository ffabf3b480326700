#include "transport/carrier_module.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include <dlfcn.h>

#include "transport/in_process/carrier.hpp"
#include "transport/shared_memory/carrier.hpp"

namespace moetier::transport {
namespace {

// What UCX takes from the environment alone. What the user has set stays.
void set_ucx_environment() {
  constexpr std::array<std::pair<const char*, const char*>, 8> defaults{{
      // Read while it is being loaded: left to itself it takes over the signals of the process it
      // is
      // in, and reports each step of losing a peer, which is an event here, to its standard error.
      {"UCX_ERROR_SIGNALS", ""},
      {"UCX_DEBUG_SIGNO", ""},
      {"UCX_HANDLE_ERRORS", "none"},
      {"UCX_LOG_LEVEL", "fatal"},
      // Settings of single transports, which no call reaches. Larger buffers raise the eager limit
      // from 8 KiB; fewer at a time, as a half's receive buffers lie in shared memory. Not 64k: a
      // fragment's length is a 16-bit field there, and a full one would be 0 bytes long.
      {"UCX_POSIX_SEG_SIZE", "65408"},
      {"UCX_SYSV_SEG_SIZE", "65408"},
      {"UCX_POSIX_RX_BUFS_GROW", "64"},
      {"UCX_SYSV_RX_BUFS_GROW", "64"},
  }};
  for (const auto& [name, value] : defaults) setenv(name, value, 0);
}

// The folder of the program or library that holds this function; empty if it cannot be told.
std::filesystem::path own_folder() {
  Dl_info info{};
  std::error_code failed;
  if (dladdr(reinterpret_cast<const void*>(&module_folders), &info) != 0 &&
      info.dli_fname != nullptr) {
    const auto file = std::filesystem::canonical(info.dli_fname, failed);
    if (!failed) return file.parent_path();
  }
  // A program started by a relative name that has changed its folder since.
  const auto program = std::filesystem::canonical("/proc/self/exe", failed);
  return failed ? std::filesystem::path{} : program.parent_path();
}

std::filesystem::path find_module(const std::string& file) {
  for (const std::string& folder : module_folders()) {
    std::error_code failed;
    auto candidate = std::filesystem::path(folder) / file;
    if (std::filesystem::is_regular_file(candidate, failed)) return candidate;
  }
  return {};
}

expected<std::unique_ptr<Communication>> open_module(std::string_view name, const std::string& file,
                                                     const carrier_options& options) {
  const auto path = find_module(file);
  if (path.empty())
    return fail(reason::carrier_unavailable, name,
                file + " is not beside this program, nor in MOETIER_MODULE_PATH");
  // Never closed: the library inside keeps handlers for the process's end.
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr)
    return fail(reason::carrier_unavailable, name, file + " or a library it needs does not load");
  auto* open = reinterpret_cast<carrier_module_open*>(dlsym(module, k_carrier_module_symbol));
  if (open == nullptr)
    return fail(reason::carrier_unavailable, name, file + " is not a carrier module");
  std::string why;
  std::unique_ptr<Communication> carrier(open(k_carrier_module_version, options, why));
  if (!carrier) {
    constexpr reason k_why = reason::carrier_unavailable;
    return unexpected_error(error{.code = status_of(k_why), .why = k_why, .text = std::move(why)});
  }
  return carrier;
}

}  // namespace

std::vector<std::string> module_folders() {
  std::vector<std::string> folders;
  if (const auto own = own_folder(); !own.empty()) {
    folders.push_back(own);
    folders.push_back(own.parent_path() / "lib");
    folders.push_back(own.parent_path() / "lib" / "moetier");
  }
  const char* named = std::getenv("MOETIER_MODULE_PATH");
  std::istringstream list(named != nullptr ? named : "");
  for (std::string folder; std::getline(list, folder, ':');)
    if (!folder.empty()) folders.push_back(folder);
  return folders;
}

expected<std::unique_ptr<Communication>> open_carrier(std::string_view name,
                                                      const carrier_options& options) {
  if (name == "in_process") return make_in_process(options);
  if (name == "shared_memory") return make_shared_memory(options);
  if (name == "ucx") {
    set_ucx_environment();
    return open_module(name, "libmoetier_ucx.so", options);
  }
  return fail(reason::invalid_argument, "the carrier", name, "in_process, shared_memory, ucx");
}

}  // namespace moetier::transport
