#pragma once
// The resolution report: which backend and which carrier a tier runs, what else was asked and why
// it was not taken. One artifact, the same in a message, the durable record, a page, the command
// line and a log. Made by coordinator/resolution/; a worker builds its backend from `winner` alone.
// Thread: any (an immutable value).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schemas/base/error.hpp"
#include "schemas/resolution/deployment.hpp"
#include "schemas/resolution/problem.hpp"
#include "schemas/resolution/reject_reason.hpp"

namespace moetier::resolution {

struct rejection {
  std::string candidate;  // identity of a backend or name of a carrier
  reject_reason why = reject_reason::not_proven;
  std::string detail;
  std::vector<std::string> workers;  // on whom; ascending by their place in the request

  bool operator==(const rejection&) const = default;
};

// A candidate that nothing speaks against but something unknown.
struct possibility {
  std::string candidate;
  std::vector<std::string> unknown;  // environment fields
  std::vector<std::string> workers;

  bool operator==(const possibility&) const = default;
};

enum class selected_by : std::uint8_t {
  pinned = 0,     // the first that can run of what was asked for
  heuristic = 1,  // a fallback: degraded
  failed = 2,     // nothing can run
  undecided = 3,  // offline: nothing is sure to run, something possible is
};
constexpr unsigned words_of(selected_by) noexcept { return 4; }
constexpr std::string_view word_of(selected_by value) noexcept {
  switch (value) {
    case selected_by::pinned: return "pinned";
    case selected_by::heuristic: return "heuristic";
    case selected_by::undecided: return "undecided";
    case selected_by::failed: break;
  }
  return "failed";
}

// The kernel that routes in the sources, and which limit of a faster one stood against it.
struct routing_choice {
  std::string kernel;           // "single_group"; empty = not resolved here
  std::string fallback_reason;  // empty = the fastest one runs
  std::string limit;
  std::uint64_t value = 0;

  bool operator==(const routing_choice&) const = default;
};

struct carrier_choice {
  std::string winner;    // "none" = no exchange is needed; empty = nothing can run
  std::string fallback;  // the next that can run; empty = none
  std::vector<rejection> rejected;
  std::vector<possibility> possible;

  bool operator==(const carrier_choice&) const = default;
};

struct resolution_report {
  std::string winner;     // "moetier.cpu.avx2.none"; empty = failed or undecided
  std::string requested;  // "AUTO"
  selected_by selected = selected_by::failed;
  std::uint64_t resolution_id = 0;                                    // 0 = no winner
  std::uint64_t epoch = 0;                                            // set by whoever commits it
  std::vector<std::pair<std::string, std::string>> env_fingerprints;  // worker, fingerprint
  std::vector<std::string> eligible;                                  // in order of preference
  std::vector<possibility> possible;
  std::vector<rejection> rejected;
  std::vector<std::string> degraded_from;  // what was asked for before, in order
  problem what;
  deployment where;
  routing_choice routing;
  carrier_choice communication;
  dtype combine_dtype = dtype::f32;
  std::string pads_to;             // "2880 as 2944"; empty = sizes stay
  std::vector<std::string> notes;  // what was asked for and has no effect

  bool degraded() const noexcept { return selected == selected_by::heuristic; }
  bool operator==(const resolution_report&) const = default;
};

// One line: "backend moetier.cpu.avx2.none (pinned), carrier ucx.two_sided, resolution 1f2e...".
std::string describe(const resolution_report& r);
// One line for each candidate that does not run, backends first, with newlines; "" if all can.
std::string describe_rejections(const resolution_report& r);

// JSON, schema "moetier.resolution/1", one line without spaces: equal reports give equal bytes, so
// messages and records carry it as it is.
std::string canonical_json(const resolution_report& r);
// The same for people, indented, with a newline.
std::string readable_json(const resolution_report& r);
// reason::file_malformed or limit_exceeded; nothing is trusted.
expected<resolution_report> read_report(std::string_view text, std::string_view name);

}  // namespace moetier::resolution
