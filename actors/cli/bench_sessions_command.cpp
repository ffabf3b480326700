#include <algorithm>

#include <fmt/core.h>

#include "actors/cli/bench_core.hpp"
#include "actors/cli/bench_document.hpp"
#include "actors/cli/bench_report.hpp"
#include "actors/cli/commands.hpp"
#include "actors/cli/embedded_tier.hpp"
#include "actors/cli/session_cell.hpp"
#include "actors/cli/session_crew.hpp"
#include "actors/cli/stage_sums.hpp"

namespace moetier::cli {
namespace {

using nlohmann::ordered_json;

struct called_tier {
  std::string address;
  std::vector<std::string> workers;  // HTTP addresses; none of a running tier
};

// One turn, and what the workers computed in it.
expected<session_turn> take_turn(session_crew& crew, const called_tier& tier,
                                 std::uint32_t sessions, std::uint32_t steps) {
  const auto before = read_stage_sums(tier.workers);
  if (!before) return tl::unexpected(before.error());
  const auto took = crew.turn(sessions, steps);
  if (!took) return tl::unexpected(took.error());
  const auto after = read_stage_sums(tier.workers);
  if (!after) return tl::unexpected(after.error());
  return session_turn{
      .sessions = sessions, .took = *took, .compute_ns = after->compute - before->compute};
}

// Numbers of sessions that the tokens suffice for; one is always among them, first.
std::vector<std::uint32_t> numbers_for(const sessions_options& o, std::uint32_t tokens) {
  std::vector<std::uint32_t> numbers{1};
  for (const std::uint32_t s : o.sessions) {
    const bool known = std::find(numbers.begin(), numbers.end(), s) != numbers.end();
    if (s <= tokens && !known) numbers.push_back(s);
  }
  return numbers;
}

class sessions_bench final {
 public:
  sessions_bench(const command_line& line, const config::settings& settings)
      : line_(line), settings_(settings), o_(line.sessions) {}

  expected<void> measure(const called_tier& tier) {
    for (const std::uint32_t tokens : o_.tokens) {
      if (auto done = measure(tier, tokens); !done) return done;
    }
    return {};
  }

  const std::vector<session_cell>& cells() const noexcept { return cells_; }
  const ordered_json& problem() const noexcept { return problem_; }
  const ordered_json& resolution() const noexcept { return resolution_; }

 private:
  expected<void> measure(const called_tier& tier, std::uint32_t tokens) {
    const std::vector<std::uint32_t> numbers = numbers_for(o_, tokens);
    const auto crew =
        session_crew::open({.address = tier.address,
                            .sessions = *std::max_element(numbers.begin(), numbers.end()),
                            .tokens = tokens,
                            .layer = o_.layer,
                            .seed = o_.seed,
                            .load = o_.load,
                            .limit = line_.timeout},
                           settings_);
    if (!crew) return tl::unexpected(crew.error());
    const transport::routing_snapshot& snapshot = (*crew)->snapshot();
    resolution_ = {{"backend", snapshot.backend}, {"carrier", snapshot.carrier}};
    problem_ = {{"hidden_size", snapshot.model.hidden_size},
                {"experts", snapshot.model.experts},
                {"top_k", snapshot.model.top_k},
                {"layer", bench_layer(snapshot.model, o_.layer).value},
                {"load", load_name(o_.load)},
                {"seed", o_.seed},
                {"repeat", o_.rounds},
                {"steps", o_.steps}};
    // The first round warms up: its turns are not kept.
    std::vector<std::vector<session_turn>> rounds;
    for (std::uint32_t r = 0; r <= o_.rounds; ++r) {
      std::vector<session_turn> round;
      for (const std::uint32_t sessions : order_of_round(numbers, r)) {
        auto turn = take_turn(**crew, tier, sessions, o_.steps);
        if (!turn) return tl::unexpected(turn.error());
        round.push_back(*turn);
      }
      if (r > 0) rounds.push_back(std::move(round));
    }
    auto cells = cells_of(rounds, {.workers = static_cast<std::uint32_t>(snapshot.workers.size()),
                                   .tokens = tokens,
                                   .steps = o_.steps});
    std::sort(cells.begin(), cells.end(),
              [](const auto& a, const auto& b) { return a.sessions < b.sessions; });
    cells_.insert(cells_.end(), cells.begin(), cells.end());
    return {};
  }

  const command_line& line_;
  const config::settings& settings_;
  const sessions_options& o_;
  std::vector<session_cell> cells_;
  ordered_json problem_, resolution_;
};

}  // namespace

expected<exit_code> run_bench_sessions(const command_line& line, const config::settings& settings) {
  const sessions_options& o = line.sessions;
  if (const auto ok = check_demands(o.demands, k_session_figures); !ok)
    return tl::unexpected(ok.error());
  const double load = load_average();
  sessions_bench bench(line, settings);
  if (o.workers.empty()) {
    if (const auto done = bench.measure({line.address, {}}); !done)
      return tl::unexpected(done.error());
  }
  for (const std::uint32_t workers : o.workers) {
    const auto tier = embedded_tier::start(line, settings.model.path, workers);
    if (!tier) return tl::unexpected(tier.error());
    const auto done = bench.measure({(*tier)->address(), (*tier)->workers()});
    if (!done) return tl::unexpected(done.error());
  }
  const ordered_json& p = bench.problem();
  bench_report report{
      .document = bench_document("sessions"),
      .tables = {session_table(bench.cells())},
      .below = fmt::format(
          "H {}, top-{} of {} experts, {}; {} rounds of {} steps, every number of sessions in each "
          "round, medians; cost: the time of the same tokens over that with one session in the "
          "same "
          "round. Each session has a thread; {} processors. {}.",
          p["hidden_size"].get<int>(), p["top_k"].get<int>(), p["experts"].get<int>(),
          bench.resolution()["backend"].get<std::string>(), o.rounds, o.steps,
          pinned_thread::processors(), load_sentence(load)),
      .figures = session_figures(bench.cells())};
  ordered_json& j = report.document;
  j["load_average"] = load;
  j["processors"] = pinned_thread::processors();
  j["resolution"] = bench.resolution();
  j["problem"] = p;
  j["cells"] = ordered_json::array();
  for (const session_cell& cell : bench.cells()) j["cells"].push_back(session_json(cell));
  return print_report(std::move(report), line.json, o.markdown, o.demands, k_session_figures);
}

}  // namespace moetier::cli
