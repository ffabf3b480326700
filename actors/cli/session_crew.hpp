#pragma once
// Sessions that call one tier at the same time, each on a thread of its own. A turn lets so many of
// them begin together and ends when the last of them is done. Thread: owner.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/cli/closed_loop.hpp"
#include "actors/cli/direct_session.hpp"
#include "actors/config/settings.hpp"
#include "schemas/base/error.hpp"

namespace moetier::cli {

struct crew_wish {
  std::string address;
  std::uint32_t sessions = 1;
  std::uint32_t tokens = 1;  // of all that take a turn together
  std::uint32_t layer = 0;   // as bench_layer()
  std::uint64_t seed = k_load_seed;
  load_wish load{};
  duration_ns limit = 10 * k_second;  // of opening a session, of a call
};

class session_crew final {
 public:
  static expected<std::unique_ptr<session_crew>> open(const crew_wish& wish,
                                                      const config::settings& settings);
  const transport::routing_snapshot& snapshot() const noexcept;
  // The time in which `sessions` of them each did `steps` steps, `tokens` in all per step; whoever
  // has gone to sleep is woken in it.
  // Requires: 1 <= sessions <= as many as were opened, sessions <= tokens.
  expected<duration_ns> turn(std::uint32_t sessions, std::uint32_t steps);

 private:
  explicit session_crew(const crew_wish& wish) : wish_(wish) {}
  crew_wish wish_;
  std::vector<std::unique_ptr<direct_session>> sessions_;
};

}  // namespace moetier::cli
