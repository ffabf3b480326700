#include "actors/doctor/carriers.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include <dlfcn.h>
#include <fmt/format.h>

#include "transport/communication.hpp"

namespace moetier::doctor {
namespace {

std::string between(const std::string& text, const std::string& from, const std::string& to) {
  const std::size_t begin = text.find(from);
  if (begin == std::string::npos) return {};
  const std::size_t first = begin + from.size();
  const std::size_t end = to.empty() ? text.size() : text.find(to, first);
  return text.substr(first, end == std::string::npos ? end : end - first);
}

bool is_shared_memory(const std::string& lane) {
  for (const char* kind : {"posix", "sysv", "xpmem", "cma", "knem", "self"}) {
    if (lane.starts_with(kind)) return true;
  }
  return false;
}

// UCX opens its modules from ucx/ beside libucs, wherever that was loaded from.
bool has_cuda_module() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t at = line.find('/');
    if (at == std::string::npos || line.find("/libucs") == std::string::npos) continue;
    std::error_code none;
    const auto folder = std::filesystem::path(line.substr(at)).parent_path() / "ucx";
    for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
      if (entry.path().filename().string().starts_with("libuct_cuda")) return true;
    }
    return false;
  }
  return false;
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

finding judge_lanes(const carrier_facts& f) {
  const bool shared = std::any_of(f.lanes.begin(), f.lanes.end(), is_shared_memory);
  if (shared) return pass("carrier_lanes", "inside this host: " + joined(f.lanes));
  const std::string seen = fmt::format("inside this host rows take {}, not shared memory",
                                       f.lanes.empty() ? "no lane" : joined(f.lanes));
  if (f.variables.find("UCX_TLS=") != std::string::npos) {
    return warn("carrier_lanes", seen, "unset UCX_TLS, which asks for that");
  }
  return failure("carrier_lanes", seen + ": a silent fall-back",
                 "look at the lines shm, cross_memory and proc_links, and at the UCX_* variables");
}

}  // namespace

carrier_facts read_description(const std::string& description) {
  carrier_facts f;
  f.description = description;
  f.version = between(description, "UCX ", ";");
  f.variables = between(description, "variables: ", "");
  std::istringstream lanes(between(description, "lanes inside this host: ", ";"));
  for (std::string lane; std::getline(lanes, lane, ',');) {
    lane.erase(0, lane.find_first_not_of(' '));
    if (!lane.empty()) f.lanes.push_back(lane);
  }
  return f;
}

carrier_facts probe_carrier(const carrier_wish& wish) {
  const auto carrier = transport::open_carrier(
      wish.name, {.listen = wish.listen, .checksum_payload = false, .allow_tcp = wish.allow_tcp});
  if (!carrier) return {.refusal = carrier.error().text};
  carrier_facts f = read_description((*carrier)->describe());
  f.cuda_memory = has_cuda_module();
  return f;
}

findings judge_carrier(const carrier_facts& f, bool gpu_wanted) {
  if (!f.refusal.empty()) {
    return {failure("carrier", f.refusal,
                    "for shared_memory let processes open /proc; for ucx keep libmoetier_ucx.so "
                    "beside the program or in ../lib, install libucx0, and look at the UCX_* "
                    "variables"),
            skip("carrier_lanes", "the carrier does not open"),
            skip("carrier_memory", "the carrier does not open")};
  }
  const bool is_ucx = !f.version.empty();
  finding memory = pass("carrier_memory", is_ucx && f.cuda_memory ? "host, cuda" : "host");
  if (gpu_wanted) memory.seen += "; a GPU worker's rows pass through pinned host memory";
  if (!is_ucx) {
    return {pass("carrier", "shared_memory"),
            pass("carrier_lanes", "inside this host: " + f.description), std::move(memory)};
  }
  return {pass("carrier", fmt::format("UCX {}", f.version)), judge_lanes(f), std::move(memory)};
}

std::optional<int> probe_nccl() {
  void* const library = ::dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  const auto ask = reinterpret_cast<int (*)(int*)>(::dlsym(library, "ncclGetVersion"));
  int version = 0;
  if (ask == nullptr || ask(&version) != 0) return std::nullopt;
  return version;
}

finding judge_nccl(std::optional<int> version) {
  if (!version) return skip("nccl", "libnccl.so.2 is not here; no carrier of this build needs it");
  return pass("nccl", fmt::format("{}.{}.{}; no carrier of this build needs it", *version / 10000,
                                  *version / 100 % 100, *version % 100));
}

}  // namespace moetier::doctor
