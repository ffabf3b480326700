#pragma once
// The processor: what it can execute, and how much of it this process may use. Thread: any (values,
// pure functions; the probes read files below `root`, which is "/" outside tests).

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "actors/doctor/finding.hpp"

namespace moetier::doctor {

struct feature_facts {
  std::string name;  // as the machine calls itself; may be empty
  bool avx2 = false;
  bool fma = false;
  bool f16c = false;
  bool avx512f = false;
};

struct share_facts {
  std::uint32_t processors = 0;  // that the scheduler may use for this process
  std::optional<double> quota;   // processors' worth of time; nullopt = none is set
  std::uint64_t periods = 0;     // of the quota so far
  std::uint64_t throttled = 0;   // of them
};

feature_facts probe_features();
share_facts probe_share(const std::filesystem::path& root);

finding judge_features(const feature_facts& f);
// Requires: threads >= 1, those that a tier of these settings computes and polls with.
finding judge_share(const share_facts& f, std::uint32_t threads);

}  // namespace moetier::doctor
