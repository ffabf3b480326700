#pragma once
// Where clients knock: a TCP address, or a Unix socket that only the process's own user can open.
// Owns the descriptor and, of a Unix socket, the file. Thread: owner.

#include <cstdint>
#include <string>
#include <string_view>

#include "schemas/base/error.hpp"

namespace moetier::coordinator {

class listening_socket final {
 public:
  // `beyond_loopback`: whether the address may be one that other machines reach.
  // reason::address_in_use, config_invalid.
  static expected<listening_socket> tcp(std::string_view address, bool beyond_loopback);
  // Mode 0600 before anybody can connect. A file that a dead process left is taken over.
  static expected<listening_socket> local(const std::string& path);

  listening_socket(listening_socket&& other) noexcept;
  listening_socket& operator=(listening_socket&& other) noexcept;
  ~listening_socket();

  int fd() const noexcept { return fd_; }
  std::uint16_t port() const noexcept;

 private:
  explicit listening_socket(int fd) : fd_(fd) {}

  int fd_;
  std::string file_;
};

}  // namespace moetier::coordinator
