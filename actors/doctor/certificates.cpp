#include "actors/doctor/certificates.hpp"

#include <array>

#include <fmt/core.h>

namespace moetier::doctor {
namespace {

constexpr std::int64_t k_day = 24 * 3600;
constexpr std::int64_t k_renew_days = 30;
constexpr std::array<const char*, 3> k_checks{"certificate", "certificate_key",
                                              "certificate_chain"};

std::string named(const certificate_facts& f, std::size_t check) {
  return fmt::format("{} {}", k_checks[check], f.zone);
}

findings all_skipped(const certificate_facts& f, const std::string& why) {
  return {skip(named(f, 0), why), skip(named(f, 1), why), skip(named(f, 2), why)};
}

findings first_fails(const certificate_facts& f, std::string seen, std::string remedy,
                     const std::string& why) {
  return {failure(named(f, 0), std::move(seen), std::move(remedy)), skip(named(f, 1), why),
          skip(named(f, 2), why)};
}

finding judge_time(const certificate_facts& f) {
  const std::string who = f.common_name.empty() ? "a certificate without a common name"
                                                : "common name " + f.common_name;
  const std::string renew =
      "have the zone's authority sign a new one and put it in place; a "
      "running coordinator takes it up for new links";
  if (f.now < f.begins) {
    return failure(named(f, 0),
                   fmt::format("{}, valid in {} hours only", who, (f.begins - f.now) / 3600 + 1),
                   "set this machine's clock, or wait");
  }
  if (f.now >= f.ends) {
    return failure(named(f, 0),
                   fmt::format("{}, expired {} days ago", who, (f.now - f.ends) / k_day), renew);
  }
  const std::int64_t days = (f.ends - f.now) / k_day;
  const std::string seen = fmt::format("{}, valid for {} days more", who, days);
  if (f.common_name.empty()) {
    return failure(named(f, 0), seen, "sign one with a common name: it is the tenant's name");
  }
  if (days < k_renew_days) return warn(named(f, 0), seen, renew);
  return pass(named(f, 0), seen);
}

finding judge_key(const certificate_facts& f) {
  if (!f.key_matches) {
    return failure(named(f, 1), f.paths.key + " is another certificate's key",
                   "name certificate and key of one pair");
  }
  if ((f.key_mode & 0077) != 0) {
    return failure(named(f, 1), fmt::format("{} has mode {:04o}", f.paths.key, f.key_mode),
                   "chmod 0600 " + f.paths.key);
  }
  return pass(named(f, 1), fmt::format("matches, mode {:04o}", f.key_mode));
}

finding judge_chain(const certificate_facts& f) {
  if (f.chain_problem.empty()) return pass(named(f, 2), "signed by " + f.paths.authority);
  return failure(named(f, 2), fmt::format("not of {}: {}", f.paths.authority, f.chain_problem),
                 "name the authority of this zone: one per zone, and no other's certificate");
}

}  // namespace

findings judge_certificates(const certificate_facts& f) {
  const auto& [certificate, key, authority] = f.paths;
  if (certificate.empty() && key.empty() && authority.empty()) {
    return all_skipped(f, "no certificate is set; everything stays on loopback");
  }
  if (certificate.empty() || key.empty() || authority.empty()) {
    return first_fails(
        f,
        fmt::format("set: certificate {}, key {}, authority {}", certificate.empty() ? "no" : "yes",
                    key.empty() ? "no" : "yes", authority.empty() ? "no" : "yes"),
        "set all three, or none", "not all three files are set");
  }
  if (!f.problem.empty()) {
    return first_fails(f, f.problem, "name a PEM file that this user can read",
                       "not all three files can be read");
  }
  return {judge_time(f), judge_key(f), judge_chain(f)};
}

}  // namespace moetier::doctor
