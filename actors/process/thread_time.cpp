#include "actors/process/thread_time.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <unistd.h>

namespace moetier {
namespace {

// Ticks from the text of a stat file: fields 14 and 15, counted behind the name, which may hold
// anything but is the last to end in a parenthesis.
std::optional<double> ticks_in(const std::string& stat) {
  const auto name_end = stat.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream rest(stat.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) rest >> skipped;
  double user = 0;
  double system = 0;
  if (!(rest >> user >> system)) return {};
  return user + system;
}

std::string first_line(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

}  // namespace

std::optional<double> thread_cpu_seconds(std::string_view name) {
  std::optional<double> ticks;
  std::error_code failed;
  // A thread may end while it is looked at: its files are empty then.
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", failed)) {
    if (first_line(task.path() / "comm") != name) continue;
    if (const auto of_one = ticks_in(first_line(task.path() / "stat"))) {
      ticks = ticks.value_or(0) + *of_one;
    }
  }
  if (!ticks) return {};
  return *ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace moetier
