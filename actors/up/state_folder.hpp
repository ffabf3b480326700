#pragma once
// The temporary state directory of one `moetier up`: made at start, removed at the end. Who is
// killed leaves one behind; the next start removes those whose owner is gone, which a lock inside
// tells. Thread: owner.

#include <filesystem>
#include <memory>
#include <string>

#include "schemas/base/error.hpp"

namespace moetier::up {

class state_folder final {
 public:
  // Below `where`, after sweeping it. reason::state_unusable.
  static expected<std::unique_ptr<state_folder>> make(const std::filesystem::path& where);
  ~state_folder();
  state_folder(const state_folder&) = delete;
  state_folder& operator=(const state_folder&) = delete;

  // For the coordinator: a folder of mode 0700 inside.
  std::string path() const { return (folder_ / "state").string(); }

  // Removes what dead ones of this user have left below `where`; how many.
  static std::size_t sweep(const std::filesystem::path& where);

 private:
  state_folder(std::filesystem::path folder, int lock) : folder_(std::move(folder)), lock_(lock) {}

  std::filesystem::path folder_;
  int lock_;  // held for life
};

}  // namespace moetier::up
