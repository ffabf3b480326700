#include "actors/cli/embedded_tier.hpp"

#include <csignal>

#include <nlohmann/json.hpp>
#include <poll.h>

#include "schemas/base/time.hpp"

namespace moetier::cli {
namespace {

// Weights of a large model come from a disk.
constexpr duration_ns k_ready_limit = 300 * k_second;
constexpr duration_ns k_end_limit = 8 * k_second;

int milliseconds(duration_ns d) { return static_cast<int>(d / k_millisecond + 1); }

}  // namespace

std::vector<std::string> up_arguments(const command_line& line, std::uint32_t workers) {
  std::vector<std::string> a{"moetier", "up", "--quiet", "-o", "json", "--rpc-port", "0"};
  if (!line.config_file.empty()) a.insert(a.end(), {"--config", line.config_file});
  for (const config::entry& e : line.flags) a.insert(a.end(), {"--set", e.key + "=" + e.value});
  a.insert(a.end(), {"--workers", std::to_string(workers)});
  return a;
}

expected<std::unique_ptr<embedded_tier>> embedded_tier::start(const command_line& line,
                                                              const std::string& model,
                                                              std::uint32_t workers) {
  if (model.empty())
    return fail(reason::config_invalid, "model.path", "not set",
                "a model directory (--model), as --workers starts a tier");
  auto child = up::child_process::start(up_arguments(line, workers));
  if (!child) return tl::unexpected(child.error());
  std::unique_ptr<embedded_tier> tier(new embedded_tier(std::move(*child)));
  if (auto ready = tier->wait_ready(k_ready_limit); !ready) return tl::unexpected(ready.error());
  return tier;
}

expected<void> embedded_tier::wait_ready(duration_ns limit) {
  const time_ns until = monotonic_now() + limit;
  for (;;) {
    while (const auto line = child_->take_line()) {
      const auto said = nlohmann::json::parse(*line, nullptr, false);
      if (!said.is_object() || said.value("schema", "") != "moetier.ready/1") continue;
      address_ = said.value("address", "");
      for (const auto& worker : said.value("workers", nlohmann::json::array()))
        workers_.push_back(worker.value("http", ""));
      return {};
    }
    if (child_->take_exit()) return fail(reason::not_ready, "the embedded tier ended at once");
    const time_ns now = monotonic_now();
    if (now >= until)
      return fail(reason::not_ready, "the embedded tier was not ready within five minutes");
    pollfd fds[] = {{child_->exit_descriptor(), POLLIN, 0},
                    {child_->output_descriptor(), POLLIN, 0}};
    ::poll(fds, 2, milliseconds(until - now));
  }
}

embedded_tier::~embedded_tier() {
  child_->send(SIGTERM);
  const time_ns until = monotonic_now() + k_end_limit;
  while (!child_->take_exit()) {
    const time_ns now = monotonic_now();
    if (now >= until) return;  // the child's owner ends it at once
    pollfd fd{child_->exit_descriptor(), POLLIN, 0};
    ::poll(&fd, 1, milliseconds(until - now));
  }
}

}  // namespace moetier::cli
