#include "actors/doctor/processor.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>

#include <fmt/core.h>
#include <sched.h>

#include "actors/doctor/control_groups.hpp"
#include "kernels/backend.hpp"

namespace moetier::doctor {
namespace {

// Processors' worth of time that one group allows: version 2 "MAX PERIOD", version 1 two files.
std::optional<double> quota_of(const std::filesystem::path& group) {
  double allowed = 0;
  double period = 0;
  if (const auto line = first_line(group / "cpu.max")) {
    std::istringstream words(*line);
    if (!(words >> allowed >> period)) return std::nullopt;  // "max 100000"
  } else {
    allowed = static_cast<double>(number_in(group / "cpu.cfs_quota_us").value_or(-1));
    period = static_cast<double>(number_in(group / "cpu.cfs_period_us").value_or(0));
  }
  if (allowed <= 0 || period <= 0) return std::nullopt;
  return allowed / period;
}

void count_throttling(const std::filesystem::path& group, share_facts& f) {
  std::ifstream counters(group / "cpu.stat");
  std::uint64_t value = 0;
  for (std::string name; counters >> name >> value;) {
    if (name == "nr_periods") f.periods = value;
    if (name == "nr_throttled") f.throttled = value;
  }
}

}  // namespace

feature_facts probe_features() {
  feature_facts f;
  const kernels::cpu_features can = kernels::detect_cpu_features();
  f.avx2 = can.avx2;
  f.fma = can.fma;
  f.f16c = can.f16c;
  f.avx512f = can.avx512f;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (!line.starts_with("model name") || colon == std::string::npos) continue;
    f.name = line.substr(colon + 2);
    break;
  }
  return f;
}

share_facts probe_share(const std::filesystem::path& root) {
  share_facts f;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  f.processors = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0
                     ? static_cast<std::uint32_t>(CPU_COUNT(&allowed))
                     : std::max(1U, std::thread::hardware_concurrency());
  for (const auto& group : group_folders(root, "cpu")) {
    const auto quota = quota_of(group);
    if (!quota || (f.quota && *f.quota <= *quota)) continue;
    f.quota = quota;
    count_throttling(group, f);
  }
  return f;
}

finding judge_features(const feature_facts& f) {
  const std::string who = f.name.empty() ? "this processor" : f.name;
  std::string lacks;
  for (const auto& [there, name] :
       {std::pair(f.avx2, "AVX2"), std::pair(f.fma, "FMA"), std::pair(f.f16c, "F16C")}) {
    if (!there) lacks += fmt::format("{}{}", lacks.empty() ? "" : ", ", name);
  }
  if (lacks.empty()) {
    return pass("cpu_features",
                fmt::format("{}: AVX2, FMA, F16C{}", who, f.avx512f ? ", AVX-512F" : ""));
  }
  return warn("cpu_features", fmt::format("{} lacks {}", who, lacks),
              "run workers on a processor that has them; here only the readable kernels (cpu_ref) "
              "compute, and the tier counts as degraded");
}

finding judge_share(const share_facts& f, std::uint32_t threads) {
  const double usable = std::min(static_cast<double>(f.processors), f.quota.value_or(f.processors));
  const std::string quota = f.quota ? fmt::format("{:.2f}", *f.quota) : "none";
  const std::string seen = fmt::format("{} processors, quota {}; the settings compute with {}",
                                       f.processors, quota, threads);
  if (usable < threads) {
    return warn("cpu_quota", seen,
                "lower worker.threads or the number of workers, raise the group's quota, or use "
                "more processors: threads that share one wait for each other in every layer");
  }
  if (f.throttled > 0 && f.throttled * 100 >= f.periods) {
    return warn("cpu_quota",
                fmt::format("{}; throttled in {} of {} periods", seen, f.throttled, f.periods),
                "raise the group's quota: a throttled worker is late in every layer");
  }
  return pass("cpu_quota", seen);
}

}  // namespace moetier::doctor
