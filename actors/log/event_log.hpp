#pragma once
// The process's log: one line per event on stderr, people's form on a terminal, one JSON object a
// line elsewhere: ts, level, event, component, then worker, epoch and generation as far as they are
// known, then the line's own fields (session, layer, request_id, ...). A refusal or trouble of one
// peer is one line a second, any event at most twenty; what is over is counted and told, so a flood
// of errors cannot fill a disk. Made by main, handed on by reference; cores never see it.
// Thread: any.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "schemas/base/ids.hpp"

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
  // `component` names the role: "coordinator", "worker", "up"; `worker` its own name, if it is one.
  event_log(std::string component, log_level least, bool json, std::string worker = {});
  ~event_log();
  event_log(const event_log&) = delete;
  event_log& operator=(const event_log&) = delete;

  void write(log_level level, std::string_view event, std::span<const log_field> fields) noexcept;
  void write(log_level level, std::string_view event,
             std::initializer_list<log_field> fields = {}) noexcept {
    write(level, event, std::span(fields.begin(), fields.size()));
  }

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

  // From now on; the level that main was given until then.
  void set_level(log_level least) noexcept;
  log_level level() const noexcept;
  // What JSON lines say of the tier from now on; 0 = not known.
  void stand(epoch_number epoch, generation_number generation) noexcept;

  std::uint64_t dropped() const noexcept;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

std::string_view log_level_name(log_level level) noexcept;
log_level log_level_from(std::string_view name) noexcept;  // "info" for anything unknown

// One line without its end, as it is written; pure, for tests. Of two fields with one name the
// first stands.
std::string log_line(bool json, std::string_view time, log_level level, std::string_view component,
                     std::string_view event, std::span<const log_field> fields);
inline std::string log_line(bool json, std::string_view time, log_level level,
                            std::string_view component, std::string_view event,
                            std::initializer_list<log_field> fields) {
  return log_line(json, time, level, component, event, std::span(fields.begin(), fields.size()));
}

}  // namespace moetier
