#pragma once
// A file that stands under a temporary name beside its own until it is whole: a reader sees the old
// file or all of the new one. Only what is free or a regular file is ever replaced. Thread: owner.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace moetier {

// Why nothing may be put at `path`; empty = it is free or holds a regular file. The rename of a
// draft would replace a device, a pipe, a socket or a link itself, not write through it.
std::string_view obstacle_at(const std::string& path);

// Each step is false with errno set where it fails; without commit() nothing stays.
class file_draft final {
 public:
  explicit file_draft(const std::string& path) : path_(path) {}
  ~file_draft();
  file_draft(const file_draft&) = delete;
  file_draft& operator=(const file_draft&) = delete;

  bool create();
  bool write(std::span<const std::byte> bytes);
  bool commit();

 private:
  bool sync_folder() const;

  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
};

}  // namespace moetier
