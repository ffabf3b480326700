#pragma once
// One line of `moetier doctor`: what was looked at, the verdict, what was found, and what to do
// about it. Every check is a pure function from probed facts to findings, so that each verdict can
// be provoked by a value; the probes beside them only read. Thread: any (values).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace moetier::doctor {

enum class verdict : std::uint8_t { pass, skip, warn, fail };  // rising
std::string_view verdict_name(verdict v) noexcept;             // "PASS"

struct finding {
  std::string check;  // "memlock", "port coordinator.rpc_listen"
  verdict what = verdict::pass;
  std::string seen;    // with its numbers; of a skip: why nobody looked
  std::string remedy;  // of warn and fail alone
};
using findings = std::vector<finding>;

finding pass(std::string check, std::string seen);
finding skip(std::string check, std::string why);
finding warn(std::string check, std::string seen, std::string remedy);
finding failure(std::string check, std::string seen, std::string remedy);

std::string rough_size(std::uint64_t bytes);  // "23.4 GiB"

verdict worst_of(const findings& all) noexcept;  // pass of none

// "WARN  memlock  64KiB may be locked; remedy: ...", a line each, and the counts at the end.
std::string findings_text(const findings& all);
// One document, schema moetier.doctor/1.
std::string findings_json(const findings& all);

}  // namespace moetier::doctor
