#include "actors/cli/plan_stats.hpp"

#include <cstdlib>
#include <optional>
#include <string_view>

#include <fmt/core.h>

#include "actors/config/endpoint.hpp"
#include "actors/http/http_get.hpp"

namespace moetier::cli {
namespace {

constexpr duration_ns k_limit = 5 * k_second;

// The value of one sample of the text form; nothing if it is not shown.
std::optional<double> sample(const std::string& text, const std::string& series) {
  const std::string line = "\n" + series + " ";
  const auto at = text.find(line);
  if (at == std::string::npos) return {};
  return std::strtod(text.c_str() + at + line.size(), nullptr);
}

std::string of_part(std::string_view part, std::string_view what) {
  return fmt::format("moetier_source_round_trip_seconds_{}{{part=\"{}\"}}", what, part);
}

}  // namespace

expected<stats_times> times_in(const std::string& metrics) {
  const auto calls = sample(metrics, of_part("wait", "count"));
  const auto held = sample(metrics, of_part("wait", "sum"));
  const auto ways = sample(metrics, of_part("wire", "sum"));
  if (!calls || !held || !ways) {
    return fail(reason::config_invalid, "--from-stats", "a page without moetier's source figures",
                "a coordinator's /metrics, with gateway.enabled");
  }
  if (*calls < 1) return fail(reason::not_ready, "no thin client has called it yet");
  return stats_times{
      .experts_us = *held / *calls * 1e6, .leg_us = *ways / *calls / 2 * 1e6, .calls = *calls};
}

expected<stats_times> times_of_tier(const std::string& url) {
  std::string_view rest(url);
  if (rest.starts_with("http://")) rest.remove_prefix(7);
  const auto slash = rest.find('/');
  const std::string path = slash == std::string_view::npos || slash + 1 == rest.size()
                               ? "/metrics"
                               : std::string(rest.substr(slash));
  auto at = config::parse_endpoint(std::string(rest.substr(0, slash)));
  if (!at) {
    return fail(reason::config_invalid, "--from-stats", fmt::format("'{}'", url),
                "a coordinator's HTTP address, as http://127.0.0.1:7402");
  }
  if (at->host == "localhost") at->host = "127.0.0.1";
  const auto answer = http::http_get(*at, path.c_str(), k_limit);
  if (!answer || answer->code != 200) return fail(reason::coordinator_unreached, url);
  return times_in(answer->body);
}

}  // namespace moetier::cli
