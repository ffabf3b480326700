#pragma once
// All checks of `moetier doctor` over this machine and one set of settings, in the order in which
// they are told. It changes nothing but for files that it makes and removes at once. Thread: owner
// (main), before any other thread: a probe forks.

#include <filesystem>
#include <vector>

#include "actors/config/endpoint.hpp"
#include "actors/config/loader.hpp"
#include "actors/doctor/carriers.hpp"
#include "actors/doctor/finding.hpp"

namespace moetier::doctor {

struct examination_wish {
  std::vector<config::endpoint> peers{};
  duration_ns peer_limit = 10 * k_second;
  std::filesystem::path root = "/";
};

findings examine(const config::loaded& given, const examination_wish& wish);

// How the settings let rows travel.
carrier_wish carrier_wish_of(const config::settings& s);

}  // namespace moetier::doctor
