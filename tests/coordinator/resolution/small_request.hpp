#pragma once
// A request that resolves (two equal workers of one kind, separate processes, nothing asked for)
// and what is read from its report.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "coordinator/resolution/resolve.hpp"
#include "tests/schemas/resolution/small_values.hpp"

namespace moetier::coordinator {

inline resolution_request small_request(
    const resolution::environment& machine = resolution::cpu_machine()) {
  resolution_request r;
  r.what = resolution::small_problem();
  r.where = resolution::small_deployment();
  r.workers = {{"worker@1", machine}, {"worker@2", machine}};
  return r;
}

// "reason: detail (workers)" of a backend or carrier; "" if it was not rejected.
inline std::string rejection_of(const std::vector<resolution::rejection>& all,
                                const std::string& candidate) {
  std::string text;
  for (const resolution::rejection& r : all) {
    if (r.candidate != candidate) continue;
    text += text.empty() ? "" : " | ";
    text += std::string(reject_name(r.why)) + ": " + r.detail + " (";
    for (const std::string& w : r.workers) text += (w == r.workers.front() ? "" : ",") + w;
    text += ")";
  }
  return text;
}

inline const std::string k_avx2 = "moetier.cpu.avx2.none";
inline const std::string k_ref = "moetier.cpu.ref.none";

// The report, whether or not anything can run.
inline resolution::resolution_report report_of(const resolution_request& r) {
  auto outcome = weigh(r);
  EXPECT_TRUE(outcome) << (outcome ? "" : outcome.error().text);
  return outcome ? outcome->report : resolution::resolution_report();
}

// "reason: text", or "ok".
inline std::string refusal_of(const resolution_request& r) {
  const auto report = resolve(r);
  if (report) return "ok";
  return std::string(reason_name(report.error().why)) + ": " + report.error().text;
}

// Why a backend cannot run; "" if it was not rejected.
inline std::string why(const resolution_request& r, const std::string& candidate) {
  return rejection_of(report_of(r).rejected, candidate);
}

}  // namespace moetier::coordinator
