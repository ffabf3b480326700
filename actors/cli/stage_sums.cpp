#include "actors/cli/stage_sums.hpp"

#include <charconv>
#include <optional>

#include "actors/config/endpoint.hpp"
#include "actors/http/http_get.hpp"
#include "schemas/base/time.hpp"

namespace moetier::cli {
namespace {

constexpr duration_ns k_ask_limit = 2 * k_second;
constexpr std::string_view k_sum = "moetier_worker_stage_seconds_sum";
constexpr std::string_view k_count = "moetier_worker_stage_seconds_count";

std::string_view stage_in(std::string_view line) {
  constexpr std::string_view k_label = "stage=\"";
  const std::size_t at = line.find(k_label);
  if (at == std::string_view::npos) return {};
  line.remove_prefix(at + k_label.size());
  return line.substr(0, line.find('"'));
}

double value_of(std::string_view line) {
  const std::size_t space = line.rfind(' ');
  double value = 0;
  if (space != std::string_view::npos)
    std::from_chars(line.data() + space + 1, line.data() + line.size(), value);
  return value;
}

}  // namespace

stage_sums& stage_sums::operator+=(const stage_sums& other) noexcept {
  receive += other.receive;
  wait += other.wait;
  group += other.group;
  compute += other.compute;
  give_back += other.give_back;
  calls += other.calls;
  return *this;
}

stage_sums stage_sums::operator-(const stage_sums& other) const noexcept {
  return {.receive = receive - other.receive,
          .wait = wait - other.wait,
          .group = group - other.group,
          .compute = compute - other.compute,
          .give_back = give_back - other.give_back,
          .calls = calls - other.calls};
}

stage_sums stage_sums_in(std::string_view metrics) {
  stage_sums s;
  while (!metrics.empty()) {
    const std::size_t end = std::min(metrics.find('\n'), metrics.size());
    const std::string_view line = metrics.substr(0, end);
    metrics.remove_prefix(std::min(end + 1, metrics.size()));
    const std::string_view stage = stage_in(line);
    if (line.starts_with(k_count)) {
      if (stage == "wait") s.calls += value_of(line);
      continue;
    }
    if (!line.starts_with(k_sum)) continue;
    const double ns = value_of(line) * static_cast<double>(k_second);
    if (stage == "receive") s.receive += ns;
    if (stage == "wait") s.wait += ns;
    if (stage == "group") s.group += ns;
    if (stage == "fc1" || stage == "fc2" || stage == "compute") s.compute += ns;
    if (stage == "return") s.give_back += ns;
  }
  return s;
}

expected<stage_sums> read_stage_sums(const std::vector<std::string>& workers) {
  stage_sums all;
  for (const std::string& worker : workers) {
    const auto at = config::parse_endpoint(worker);
    const auto page = at ? http::http_get(*at, "/metrics", k_ask_limit) : std::nullopt;
    if (!page || page->code != 200)
      return fail(reason::not_ready, "a worker of the embedded tier does not show its metrics");
    all += stage_sums_in(page->body);
  }
  return all;
}

}  // namespace moetier::cli
