#include "actors/doctor/control_groups.hpp"

#include <charconv>
#include <fstream>
#include <system_error>

namespace moetier::doctor {
namespace {

namespace fs = std::filesystem;

bool lists(std::string_view controllers, std::string_view wanted) {
  while (!controllers.empty()) {
    const std::size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == wanted) return true;
    if (comma == std::string_view::npos) return false;
    controllers.remove_prefix(comma + 1);
  }
  return false;
}

// `path` below `mount` and everything between; a path that is not there (a group namespace) is the
// mount itself.
void add_with_parents(const fs::path& mount, const std::string& path, std::vector<fs::path>& into) {
  fs::path group = fs::path(path).relative_path().lexically_normal();
  std::error_code none;
  while (!group.empty() && group != ".") {
    if (fs::is_directory(mount / group, none)) into.push_back(mount / group);
    group = group.parent_path();
  }
  if (fs::is_directory(mount, none)) into.push_back(mount);
}

}  // namespace

std::vector<fs::path> group_folders(const fs::path& root, std::string_view controller) {
  std::vector<fs::path> folders;
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/path", "4:cpu,cpuacct:/path"
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      add_with_parents(root / "sys/fs/cgroup", path, folders);
    } else if (lists(controllers, controller)) {
      add_with_parents(root / "sys/fs/cgroup" / controllers, path, folders);
      if (controllers != controller) {
        add_with_parents(root / "sys/fs/cgroup" / std::string(controller), path, folders);
      }
    }
  }
  return folders;
}

std::optional<std::string> first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  if (!in || !std::getline(in, line)) return std::nullopt;
  return line;
}

std::optional<std::int64_t> number_in(const fs::path& file) {
  const auto line = first_line(file);
  if (!line) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(line->data(), line->data() + line->size(), value);
  if (problem != std::errc{} || end != line->data() + line->size()) return std::nullopt;
  return value;
}

}  // namespace moetier::doctor
