#include "actors/log/event_log.hpp"

#include <atomic>
#include <chrono>
#include <ctime>
#include <map>
#include <mutex>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "schemas/base/time.hpp"

namespace moetier {
namespace {

constexpr std::uint32_t k_lines_per_event_and_second = 20;
constexpr std::size_t k_events_tracked_max = 256;

std::string_view level_name(log_level level) noexcept {
  switch (level) {
    case log_level::debug: return "debug";
    case log_level::info: return "info";
    case log_level::warn: return "warn";
    case log_level::error: return "error";
    case log_level::off: return "off";
  }
  return "info";
}

spdlog::level::level_enum spdlog_level(log_level level) noexcept {
  switch (level) {
    case log_level::debug: return spdlog::level::debug;
    case log_level::info: return spdlog::level::info;
    case log_level::warn: return spdlog::level::warn;
    case log_level::error: return spdlog::level::err;
    case log_level::off: return spdlog::level::off;
  }
  return spdlog::level::info;
}

std::string utc_now() {
  const auto now = std::chrono::system_clock::now();
  const auto micros =
      std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(now)), micros % 1'000'000);
}

// Foreign text may hold anything; what is not UTF-8 becomes the replacement character.
std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string log_line(bool json, std::string_view time, log_level level, std::string_view component,
                     std::string_view event, std::initializer_list<log_field> fields) {
  if (!json) {
    std::string line = fmt::format("{} {:5} {} {}", time, level_name(level), component, event);
    for (const log_field& f : fields) line += fmt::format("  {}={}", f.name, f.value);
    return line;
  }
  std::string line = fmt::format(R"({{"ts":"{}","level":"{}","event":{},"component":{})", time,
                                 level_name(level), json_text(event), json_text(component));
  for (const log_field& f : fields) {
    line += fmt::format(",{}:{}", json_text(f.name), f.number ? f.value : json_text(f.value));
  }
  return line + "}";
}

struct event_log::state {
  struct budget {
    time_ns second_began = 0;
    std::uint32_t written = 0;
    std::uint64_t dropped = 0;  // since the last line of this event
  };

  std::string component;
  log_level least;
  bool json;
  spdlog::logger out;
  std::mutex mutex;
  std::map<std::string, budget, std::less<>> budgets;
  std::atomic<std::uint64_t> dropped{0};

  state(std::string c, log_level l, bool j)
      : component(std::move(c)),
        least(l),
        json(j),
        out("moetier", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    out.set_pattern("%v");
    out.set_level(spdlog_level(l));
    out.flush_on(spdlog::level::debug);
    // A full or closed stderr is no reason to fail; the default handler would print there again.
    out.set_error_handler([](const std::string&) {});
  }

  // How many lines of this event were dropped before this one, or nothing if this one is dropped.
  bool may_write(std::string_view event, std::uint64_t& dropped_before) {
    const time_ns now = monotonic_now();
    const std::lock_guard lock(mutex);
    auto at = budgets.find(event);
    if (at == budgets.end()) {
      if (budgets.size() >= k_events_tracked_max) budgets.clear();
      at = budgets.emplace(std::string(event), budget{.second_began = now}).first;
    }
    budget& b = at->second;
    if (now - b.second_began >= k_second) {
      b.second_began = now;
      b.written = 0;
    }
    if (b.written >= k_lines_per_event_and_second) {
      ++b.dropped;
      return false;
    }
    ++b.written;
    dropped_before = std::exchange(b.dropped, 0);
    return true;
  }
};

event_log::event_log(std::string component, log_level least, bool json)
    : state_(std::make_unique<state>(std::move(component), least, json)) {}

event_log::~event_log() = default;

void event_log::write(log_level level, std::string_view event,
                      std::initializer_list<log_field> fields) noexcept {
  if (level < state_->least || state_->least == log_level::off) return;
  try {
    std::uint64_t dropped_before = 0;
    if (!state_->may_write(event, dropped_before)) {
      state_->dropped.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    const std::string now = utc_now();
    if (dropped_before != 0) {
      state_->out.log(spdlog_level(log_level::warn),
                      log_line(state_->json, now, log_level::warn, state_->component,
                               "lines_dropped", {{"of", event}, {"count", dropped_before}}));
    }
    state_->out.log(spdlog_level(level),
                    log_line(state_->json, now, level, state_->component, event, fields));
  } catch (...) {
    // A line that cannot be made (no memory) is a dropped line; logging never fails its caller.
    state_->dropped.fetch_add(1, std::memory_order_relaxed);
  }
}

std::uint64_t event_log::dropped() const noexcept {
  return state_->dropped.load(std::memory_order_relaxed);
}

log_level log_level_from(std::string_view name) noexcept {
  for (const log_level level :
       {log_level::debug, log_level::info, log_level::warn, log_level::error, log_level::off}) {
    if (level_name(level) == name) return level;
  }
  return log_level::info;
}

}  // namespace moetier
