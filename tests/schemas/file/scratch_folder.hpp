#pragma once
// A folder of a test's own, gone with all it holds when the test ends; and the sentence of a
// refusal, for comparing it whole. Thread: owner.

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include <unistd.h>

#include <gtest/gtest.h>

#include "schemas/base/error.hpp"

namespace moetier {

class scratch_folder final {
 public:
  scratch_folder() {
    std::string form = (std::filesystem::temp_directory_path() / "moetier_XXXXXX").string();
    path_ = ::mkdtemp(form.data());
  }
  ~scratch_folder() { std::filesystem::remove_all(path_); }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }

  std::string write(std::string_view name, std::string_view bytes) const {
    // A new file each time: cutting one that is there makes some file systems write at once.
    std::filesystem::remove(file(name));
    std::ofstream(file(name), std::ios::binary) << bytes;
    return file(name);
  }
  std::string read(std::string_view name) const {
    std::ostringstream all;
    all << std::ifstream(file(name), std::ios::binary).rdbuf();
    return all.str();
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::string path_;
};

// What a refusal says; "ok" for none.
template <class T>
std::string sentence(const expected<T>& result) {
  return result ? "ok" : result.error().text;
}

// The same with the scratch folder's name, which differs from run to run, cut out.
template <class T>
std::string sentence(const expected<T>& result, const scratch_folder& folder) {
  std::string text = sentence(result);
  for (auto at = text.find(folder.path()); at != text.npos; at = text.find(folder.path()))
    text.replace(at, folder.path().size(), "DIR");
  return text;
}

}  // namespace moetier
