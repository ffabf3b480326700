#pragma once
// Lines of text between two doctors over TCP: who they are, and the carrier's addresses. Every wait
// has a limit, every line a length. Thread: owner.

#include <memory>
#include <optional>
#include <string>

#include "actors/config/endpoint.hpp"
#include "schemas/base/error.hpp"
#include "schemas/base/time.hpp"

namespace moetier::doctor {

inline constexpr std::size_t k_peer_line_bytes_max = 16384;

class peer_line final {
 public:
  // reason::coordinator_unreached says why.
  static expected<std::unique_ptr<peer_line>> connect(const config::endpoint& to,
                                                      duration_ns limit);
  explicit peer_line(int connected) : fd_(connected) {}
  ~peer_line();
  peer_line(const peer_line&) = delete;
  peer_line& operator=(const peer_line&) = delete;

  bool say(const std::string& line);  // without its newline
  // nullopt: nothing came within the limit, the other end is gone, or the line is too long.
  std::optional<std::string> hear(duration_ns limit);
  bool open() noexcept;  // the other end is still there, and has kept to the rules

 private:
  int fd_;
  std::string unread_;
  bool broken_ = false;  // gone, or a line was too long
};

class peer_listener final {
 public:
  // reason::address_in_use, or config_invalid for an address that is none of this machine.
  static expected<std::unique_ptr<peer_listener>> open(const config::endpoint& at);
  ~peer_listener();
  peer_listener(const peer_listener&) = delete;
  peer_listener& operator=(const peer_listener&) = delete;

  const config::endpoint& address() const noexcept { return address_; }
  // nullptr: nobody came within the limit.
  std::unique_ptr<peer_line> accept(duration_ns limit);

 private:
  peer_listener(int fd, config::endpoint address) : fd_(fd), address_(std::move(address)) {}
  int fd_;
  config::endpoint address_;
};

}  // namespace moetier::doctor
