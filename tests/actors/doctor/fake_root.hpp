#pragma once
// A small tree that stands for "/" in probes: sysfs, procfs and the like, as far as a test writes
// them. Thread: owner.

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/schemas/file/scratch_folder.hpp"

namespace moetier::doctor {

class fake_root final {
 public:
  std::filesystem::path path() const { return folder_.path(); }
  void put(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((path() / file).parent_path());
    std::ofstream(path() / file) << text;
  }

 private:
  scratch_folder folder_;
};

}  // namespace moetier::doctor
