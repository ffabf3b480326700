#include "actors/log/event_log.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <mutex>
#include <optional>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "actors/log/line_budget.hpp"
#include "actors/log/line_writer.hpp"
#include "schemas/base/time.hpp"

namespace moetier {
namespace {

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

// Nor does it move a terminal's cursor.
std::string printable(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == 0x7f || (c >= 0 && c < 0x20); }, '?');
  return text;
}

}  // namespace

std::string log_line(bool json, std::string_view time, log_level level, std::string_view component,
                     std::string_view event, std::span<const log_field> fields) {
  std::string line =
      json ? fmt::format(R"({{"ts":"{}","level":"{}","event":{},"component":{})", time,
                         log_level_name(level), json_text(event), json_text(component))
           : fmt::format("{} {:5} {} {}", time, log_level_name(level), component, event);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const log_field& f = fields[i];
    const auto said = [&f](const log_field& earlier) { return earlier.name == f.name; };
    if (std::ranges::any_of(fields.first(i), said)) continue;
    line += json ? fmt::format(",{}:{}", json_text(f.name), f.number ? f.value : json_text(f.value))
                 : fmt::format("  {}={}", f.name, printable(f.value));
  }
  return json ? line + "}" : line;
}

struct event_log::state {
  std::string component;
  std::string worker;
  std::atomic<log_level> least;
  bool json;
  line_writer out{STDERR_FILENO};
  std::mutex mutex;
  line_budget budget;
  std::atomic<std::uint64_t> dropped{0};
  std::atomic<std::uint64_t> epoch{0};
  std::atomic<std::uint64_t> generation{0};

  state(std::string c, log_level l, bool j, std::string w)
      : component(std::move(c)), worker(std::move(w)), least(l), json(j) {}

  std::string line(log_level level, std::string_view event, std::span<const log_field> fields) {
    std::vector<log_field> all(fields.begin(), fields.end());
    // People read the standing ones once, in `status`; whoever filters lines wants them in each.
    if (json) {
      std::vector<log_field> standing;
      const auto own = [&](std::string_view name) {
        const auto at = std::ranges::find(all, name, &log_field::name);
        if (at != all.end()) standing.push_back(*at);
        return at != all.end();
      };
      const auto number = [&](std::string_view name, std::uint64_t value) {
        if (!own(name) && value != 0) standing.emplace_back(name, value);
      };
      if (!own("worker") && !worker.empty()) standing.emplace_back("worker", worker);
      number("epoch", epoch.load(std::memory_order_relaxed));
      number("generation", generation.load(std::memory_order_relaxed));
      all.insert(all.begin(), standing.begin(), standing.end());
    }
    const std::string& who = json || worker.empty() ? component : worker;
    return log_line(json, utc_now(), level, who, event, all);
  }
};

namespace {

// Names reason and peer of a line that says that something is refused or wrong; else empty.
std::string trouble_of(log_level level, std::span<const log_field> fields) {
  std::string named;
  bool trouble = level >= log_level::warn;
  for (const log_field& f : fields) {
    if (f.name == "reason") trouble = true;
    for (const std::string_view name :
         {"reason", "worker", "session", "peer", "name", "link", "adapter"}) {
      if (f.name == name) named += fmt::format("{}={};", f.name, f.value);
    }
  }
  // Trouble without a peer is the process's own, and its text may differ: the event's limit holds.
  return trouble ? named : std::string();
}

}  // namespace

event_log::event_log(std::string component, log_level least, bool json, std::string worker)
    : state_(std::make_unique<state>(std::move(component), least, json, std::move(worker))) {}

event_log::~event_log() = default;

void event_log::write(log_level level, std::string_view event,
                      std::span<const log_field> fields) noexcept {
  state& s = *state_;
  const log_level least = s.least.load(std::memory_order_relaxed);
  if (level < least || least == log_level::off) return;
  try {
    const std::string trouble = trouble_of(level, fields);
    std::optional<std::uint64_t> left_out;
    {
      const std::lock_guard lock(s.mutex);
      left_out = s.budget.take(event, trouble, monotonic_now());
    }
    if (!left_out) {
      s.dropped.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    if (*left_out != 0) {
      const log_field told[] = {{"of", event}, {"count", *left_out}};
      s.out.write(s.line(log_level::warn, "lines_dropped", told) + "\n");
    }
    s.out.write(s.line(level, event, fields) + "\n");
  } catch (...) {
    // A line that cannot be made (no memory) is a dropped line; logging never fails its caller.
    s.dropped.fetch_add(1, std::memory_order_relaxed);
  }
}

void event_log::set_level(log_level least) noexcept {
  state_->least.store(least, std::memory_order_relaxed);
}

log_level event_log::level() const noexcept {
  return state_->least.load(std::memory_order_relaxed);
}

void event_log::stand(epoch_number epoch, generation_number generation) noexcept {
  state_->epoch.store(epoch.value, std::memory_order_relaxed);
  state_->generation.store(generation.value, std::memory_order_relaxed);
}

std::uint64_t event_log::dropped() const noexcept {
  return state_->dropped.load(std::memory_order_relaxed) + state_->out.dropped();
}

std::string_view log_level_name(log_level level) noexcept {
  switch (level) {
    case log_level::debug: return "debug";
    case log_level::info: return "info";
    case log_level::warn: return "warn";
    case log_level::error: return "error";
    case log_level::off: return "off";
  }
  return "info";
}

log_level log_level_from(std::string_view name) noexcept {
  for (const log_level level :
       {log_level::debug, log_level::info, log_level::warn, log_level::error, log_level::off}) {
    if (log_level_name(level) == name) return level;
  }
  return log_level::info;
}

}  // namespace moetier
