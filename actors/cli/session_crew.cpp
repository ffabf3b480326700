#include "actors/cli/session_crew.hpp"

#include <latch>
#include <optional>
#include <thread>

#include "actors/cli/session_cell.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::cli {

expected<std::unique_ptr<session_crew>> session_crew::open(const crew_wish& wish,
                                                           const config::settings& settings) {
  std::unique_ptr<session_crew> crew(new session_crew(wish));
  for (std::uint32_t s = 0; s < wish.sessions; ++s) {
    auto session = direct_session::open(
        {.address = wish.address, .tokens_max = wish.tokens, .limit = wish.limit}, settings);
    if (!session) return tl::unexpected(session.error());
    crew->sessions_.push_back(std::move(*session));
  }
  return crew;
}

const transport::routing_snapshot& session_crew::snapshot() const noexcept {
  return sessions_.front()->source().snapshot();
}

expected<duration_ns> session_crew::turn(std::uint32_t sessions, std::uint32_t steps) {
  MOETIER_ASSERT(sessions >= 1 && sessions <= sessions_.size() && sessions <= wish_.tokens);
  std::vector<std::unique_ptr<closed_loop>> loops;
  for (std::uint32_t s = 0; s < sessions; ++s) {
    client::source_session& source = sessions_[s]->source();
    loops.push_back(std::make_unique<closed_loop>(
        source, loop_wish{.layer = bench_layer(source.snapshot().model, wish_.layer),
                          .tokens = tokens_of_session(wish_.tokens, sessions, s),
                          .seed = wish_.seed + s,
                          .load = wish_.load,
                          .deadline = wish_.limit}));
  }
  std::vector<std::optional<error>> failed(sessions);
  std::latch ready(sessions), go(1);
  std::vector<time_ns> ended(sessions);
  std::vector<std::jthread> threads;
  for (std::uint32_t s = 0; s < sessions; ++s) {
    threads.emplace_back([&, s] {
      ready.count_down();
      go.wait();
      for (std::uint32_t i = 0; i < steps && !failed[s]; ++i) {
        if (const auto done = loops[s]->call(); !done) failed[s] = done.error();
      }
      ended[s] = monotonic_now();
    });
  }
  ready.wait();
  const time_ns began = monotonic_now();
  go.count_down();
  threads.clear();  // joins them
  for (auto& why : failed) {
    if (why) return tl::unexpected(std::move(*why));
  }
  return *std::max_element(ended.begin(), ended.end()) - began;
}

}  // namespace moetier::cli
