#include "actors/cli/ucx_echo.hpp"

#include <filesystem>
#include <memory>
#include <string>

#include <dlfcn.h>

#include "transport/carrier_module.hpp"

namespace moetier::cli {
namespace {

transport::ucx_echo* find_echo() {
  for (const std::string& folder : transport::module_folders()) {
    const auto file = std::filesystem::path(folder) / "libmoetier_ucx.so";
    void* const module = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) continue;
    return reinterpret_cast<transport::ucx_echo*>(::dlsym(module, transport::k_ucx_echo_symbol));
  }
  return nullptr;
}

}  // namespace

expected<std::vector<std::uint64_t>> run_ucx_echo(const transport::echo_wish& wish) {
  // The library reads part of its settings while it is loaded: the carrier sees to that.
  const auto carrier = transport::open_carrier("ucx", wish.options);
  if (!carrier) return tl::unexpected(carrier.error());
  transport::ucx_echo* const echo = find_echo();
  if (echo == nullptr) return fail(reason::carrier_unavailable, "ucx", "its module has no echo");
  std::vector<std::uint64_t> times;
  std::string why;
  if (!echo(wish, times, why)) return fail(reason::carrier_unavailable, "ucx", why);
  return times;
}

}  // namespace moetier::cli
