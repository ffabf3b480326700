#include "actors/cli/status_watch.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>

#include <fmt/core.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "actors/cli/status_text.hpp"
#include "actors/log/event_log.hpp"
#include "actors/process/stop_signal.hpp"

namespace moetier::cli {
namespace {

constexpr duration_ns k_ask_limit = k_second;  // so that Ctrl-C is never far
constexpr std::size_t k_events_shown = 6;

// The other screen of a terminal, without a cursor, for as long as this lives.
class own_screen final {
 public:
  own_screen() { put("\x1b[?1049h\x1b[?25l"); }
  ~own_screen() { put("\x1b[?25h\x1b[?1049l"); }
  own_screen(const own_screen&) = delete;
  own_screen& operator=(const own_screen&) = delete;

  static void put(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }
};

// Readable when the window has another size.
class resize_signal final {
 public:
  resize_signal() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGWINCH);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  ~resize_signal() {
    if (fd_ >= 0) ::close(fd_);
  }
  resize_signal(const resize_signal&) = delete;
  resize_signal& operator=(const resize_signal&) = delete;

  int descriptor() const noexcept { return fd_; }
  void take() noexcept {
    signalfd_siginfo ignored{};
    while (::read(fd_, &ignored, sizeof ignored) > 0) {
    }
  }

 private:
  int fd_ = -1;
};

winsize window() noexcept {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) {
    size.ws_row = 24;
    size.ws_col = 80;
  }
  return size;
}

// The newest answer and the one before it, or why there is none.
class watched final {
 public:
  void take(expected<std::string> answer, time_ns now) {
    failure_ = answer ? std::string() : answer.error().text;
    if (!answer) return;
    if (!document_.empty()) {
      earlier_ = earlier_status{std::move(document_),
                                static_cast<double>(now - at_) / static_cast<double>(k_second)};
    }
    document_ = std::move(*answer);
    at_ = now;
  }

  bool failed() const noexcept { return !failure_.empty(); }
  const std::string& document() const noexcept { return document_; }
  const std::optional<earlier_status>& earlier() const noexcept { return earlier_; }

  std::string picture(time_ns now, std::string_view address) const {
    std::string text = fmt::format("moetier at {}  (Ctrl-C ends)\n", address);
    if (failed()) {
      text += fmt::format(
          "no answer{}: {}\n",
          at_ == 0 ? "" : fmt::format(", the figures are {} s old", (now - at_) / k_second),
          failure_);
    }
    text += status_text(document_, earlier_);
    const std::string events = events_text(document_, k_events_shown);
    return events.empty() ? text : fmt::format("{}\nevents\n{}", text, events);
  }

  std::string line() const {
    return failed() ? fmt::format("no answer: {}\n", failure_) : status_line(document_, earlier_);
  }

 private:
  std::string document_;
  std::optional<earlier_status> earlier_;
  time_ns at_ = 0;
  std::string failure_;
};

}  // namespace

std::string terminal_frame(std::string_view text, std::size_t rows, std::size_t columns) {
  std::string out = "\x1b[H";
  std::size_t row = 0;
  while (!text.empty() && row < rows) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    // The line break of the row before: the last row gets none, or the screen would scroll.
    if (row++ > 0) out += "\r\n";
    std::size_t column = 0;
    for (const char c : text.substr(0, end)) {
      const bool begins = (static_cast<unsigned char>(c) & 0xc0) != 0x80;  // a character of UTF-8
      if (begins && ++column > columns) break;
      const bool moves = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
      out += moves ? '?' : c;
    }
    out += "\x1b[K";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out + "\x1b[J";
}

expected<exit_code> watch_status(const command_line& line, client::tier_link& link) {
  event_log silent("status", log_level::off, false);
  stop_signal stop(silent);
  resize_signal resized;
  const bool terminal = ::isatty(STDOUT_FILENO) != 0 && !line.json;
  const duration_ns limit = std::min(k_ask_limit, line.timeout);
  watched status;
  {
    std::optional<own_screen> screen;
    if (terminal) screen.emplace();
    time_ns due = 0;
    while (!stop.stopping()) {
      const time_ns now = monotonic_now();
      const bool asks = now >= due;
      if (asks) {
        due = now + line.watch.interval;
        status.take(link.document(client::admin_document::status, limit), monotonic_now());
        if (stop.stopping()) break;
      }
      if (terminal) {
        const winsize size = window();
        own_screen::put(terminal_frame(status.picture(monotonic_now(), line.address), size.ws_row,
                                       size.ws_col));
      } else if (asks) {
        own_screen::put(line.json && !status.failed() ? status.document() + "\n" : status.line());
        if (std::ferror(stdout) != 0) return exit_code::done;  // whoever read it has gone
      }
      const time_ns then = monotonic_now();
      const duration_ns rest = due > then ? due - then : 0;
      pollfd fds[] = {{stop.descriptor(), POLLIN, 0}, {resized.descriptor(), POLLIN, 0}};
      ::poll(fds, 2, static_cast<int>(std::min<duration_ns>(rest / k_millisecond + 1, 3'600'000)));
      resized.take();
    }
  }
  // What was seen last stays where the command was given.
  if (terminal) own_screen::put(status_text(status.document(), status.earlier()));
  return exit_code::done;
}

}  // namespace moetier::cli
