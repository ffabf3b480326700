#include <cstdio>

#include <fmt/core.h>
#include <unistd.h>

#include "actors/cli/commands.hpp"
#include "actors/config/endpoint.hpp"
#include "actors/doctor/examination.hpp"
#include "actors/doctor/peers.hpp"
#include "actors/log/event_log.hpp"
#include "actors/process/stop_signal.hpp"

namespace moetier::cli {
namespace {

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

expected<exit_code> answer(const command_line& line, const config::settings& settings) {
  const config::endpoint at = *config::parse_endpoint(line.doctor.answer);
  if (!config::is_loopback(at.host) && !line.doctor.insecure) {
    return fail(reason::config_invalid, "--answer", line.doctor.answer,
                "a loopback address, or any with --insecure while you measure");
  }
  event_log log("doctor", log_level_from(settings.log.level), ::isatty(STDERR_FILENO) == 0);
  stop_signal stop(log);
  const auto ended = doctor::answer_peers(
      at, doctor::carrier_wish_of(settings),
      [&](const config::endpoint& where) {
        const std::string address = config::endpoint_text(where);
        print(line.json ? fmt::format("{{\"schema\":\"moetier.answering/1\",\"address\":\"{}\"}}\n",
                                      address)
                        : fmt::format("answering on {}\n", address));
      },
      [&stop] { return stop.stopping(); });
  if (!ended) return tl::unexpected(ended.error());
  return exit_code::done;
}

}  // namespace

expected<exit_code> run_doctor(const command_line& line, const config::loaded& settings) {
  if (!line.doctor.answer.empty()) return answer(line, settings.values);
  doctor::examination_wish wish{.peer_limit = line.timeout};
  for (const std::string& peer : line.doctor.peers) {
    wish.peers.push_back(*config::parse_endpoint(peer));
  }
  const doctor::findings all = doctor::examine(settings, wish);
  print(line.json ? doctor::findings_json(all) : doctor::findings_text(all));
  return doctor::worst_of(all) == doctor::verdict::fail ? exit_code::check_failed : exit_code::done;
}

}  // namespace moetier::cli
