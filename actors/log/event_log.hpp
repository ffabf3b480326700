#pragma once
// The process's log: one line per event on stderr, people's form on a terminal, one JSON object a
// line elsewhere (ts, level, event, component, then the fields). Lines of one event are limited per
// second and what was dropped is counted and told, so a flood of errors cannot fill a disk. Made by
// main, handed on by reference; cores never see it. Thread: any.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

namespace moetier {

enum class log_level : std::uint8_t { debug, info, warn, error, off };

struct log_field {
  std::string_view name;
  std::string value;
  bool number = false;  // print without quotes

  log_field(std::string_view n, std::string_view v) : name(n), value(v) {}
  log_field(std::string_view n, const char* v) : name(n), value(v) {}
  log_field(std::string_view n, const std::string& v) : name(n), value(v) {}
  log_field(std::string_view n, std::uint64_t v)
      : name(n), value(std::to_string(v)), number(true) {}
};

class event_log final {
 public:
  // `component` names the role: "coordinator", "worker@2", "up".
  event_log(std::string component, log_level least, bool json);
  ~event_log();
  event_log(const event_log&) = delete;
  event_log& operator=(const event_log&) = delete;

  void write(log_level level, std::string_view event,
             std::initializer_list<log_field> fields = {}) noexcept;

  void debug(std::string_view event, std::initializer_list<log_field> f = {}) noexcept {
    write(log_level::debug, event, f);
  }
  void info(std::string_view event, std::initializer_list<log_field> f = {}) noexcept {
    write(log_level::info, event, f);
  }
  void warn(std::string_view event, std::initializer_list<log_field> f = {}) noexcept {
    write(log_level::warn, event, f);
  }
  void error(std::string_view event, std::initializer_list<log_field> f = {}) noexcept {
    write(log_level::error, event, f);
  }

  std::uint64_t dropped() const noexcept;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

log_level log_level_from(std::string_view name) noexcept;  // "info" for anything unknown

// One line without its end, as it is written; pure, for tests.
std::string log_line(bool json, std::string_view time, log_level level, std::string_view component,
                     std::string_view event, std::initializer_list<log_field> fields);

}  // namespace moetier
