#pragma once
// The zone's certificate files as a start would meet them: readable, of one pair, of one authority,
// and in time. Thread: any (values, pure functions); the probe reads the files. No key or part of
// one leaves it.

#include <cstdint>
#include <string>

#include "actors/doctor/finding.hpp"

namespace moetier::doctor {

struct certificate_paths {
  std::string certificate, key, authority;  // empty = not set
};

struct certificate_facts {
  std::string zone;  // "rpc": whose certificates; stands in each line
  certificate_paths paths;
  std::string problem{};      // first file that cannot be read as what it should be
  std::string common_name{};  // of the certificate
  std::int64_t begins = 0;    // Unix seconds
  std::int64_t ends = 0;      // of what ends first on the way from it to the authority
  std::int64_t now = 0;
  bool key_matches = false;
  std::uint32_t key_mode = 0;
  std::string chain_problem{};  // why the authority does not vouch for it; empty = it does
};

certificate_facts probe_certificates(std::string zone, const certificate_paths& paths);
// certificate, certificate_key and certificate_chain of the zone.
findings judge_certificates(const certificate_facts& f);

}  // namespace moetier::doctor
