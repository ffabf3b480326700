#pragma once
// A small tree that stands for "/" in probes: sysfs, procfs and the like, as far as a test writes
// them. Thread: owner.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace moetier::doctor {

class fake_root final {
 public:
  fake_root() {
    std::string name = (std::filesystem::temp_directory_path() / "moetier-root-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~fake_root() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  fake_root(const fake_root&) = delete;
  fake_root& operator=(const fake_root&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  void put(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace moetier::doctor
