#include "actors/cli/bench_peer.hpp"

#include <filesystem>
#include <system_error>

#include <dlfcn.h>
#include <fmt/core.h>

#include "schemas/file/printable.hpp"
#include "transport/carrier_module.hpp"

namespace moetier::cli {
namespace {

std::filesystem::path beside_modules() {
  for (const std::string& folder : transport::module_folders()) {
    std::error_code failed;
    auto candidate = std::filesystem::path(folder) / k_gemm_peer_file;
    if (std::filesystem::is_regular_file(candidate, failed)) return candidate;
  }
  return {};
}

// nullptr and a sentence, or the peer.
found_peer load(const std::filesystem::path& file) {
  void* const module = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    const char* text = ::dlerror();
    return {.why = fmt::format("cannot be loaded: {}", text != nullptr ? text : "no reason given")};
  }
  const auto* peer = static_cast<const moetier_gemm_peer*>(::dlsym(module, k_gemm_peer_symbol));
  if (peer == nullptr) return {.why = fmt::format("has no {}", k_gemm_peer_symbol)};
  if (peer->version != k_gemm_peer_version)
    return {.why = fmt::format("has version {}, not {}", peer->version, k_gemm_peer_version)};
  return {.peer = peer};
}

}  // namespace

expected<found_peer> find_gemm_peer(const std::string& file) {
  if (file == "none") return found_peer{.why = "peer: left out"};
  const auto path = file.empty() ? beside_modules() : std::filesystem::path(file);
  if (path.empty())
    return found_peer{
        .why = fmt::format("peer: none, {} is not there (built with the tests, from libdnnl-dev)",
                           k_gemm_peer_file)};
  found_peer found = load(path);
  if (found.peer != nullptr || file.empty()) {
    if (found.peer == nullptr)
      found.why = fmt::format("peer: none, {} {}", k_gemm_peer_file, found.why);
    return found;
  }
  return fail(
      reason::config_invalid, "--peer", printable(file),
      fmt::format("none, or a module that exports {}; this one {}", k_gemm_peer_symbol, found.why));
}

std::unique_ptr<peer_product> peer_product::open(const moetier_gemm_peer& peer, std::uint32_t form,
                                                 std::uint32_t rows, std::uint32_t outputs,
                                                 std::uint32_t depth) {
  void* const product = peer.open(form, rows, outputs, depth);
  if (product == nullptr) return nullptr;
  return std::unique_ptr<peer_product>(new peer_product(peer, product));
}

}  // namespace moetier::cli
