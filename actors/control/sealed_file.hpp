#pragma once
// Bytes as a file that has a name, for a library that reads files by itself, as often as it likes:
// memory of this process that nobody can change or take away. Thread: owner; the name: any.

#include <string>
#include <string_view>

#include "schemas/base/error.hpp"

namespace moetier::actors {

class sealed_file final {
 public:
  static expected<sealed_file> make(std::string_view bytes);
  sealed_file(sealed_file&& other) noexcept;
  sealed_file& operator=(sealed_file&& other) noexcept;
  ~sealed_file();

  std::string name() const;  // in this process alone

 private:
  explicit sealed_file(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace moetier::actors
