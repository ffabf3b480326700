#include "actors/cli/bench_report.hpp"

#include <cstdio>

#include <fmt/core.h>

#include "actors/cli/bench_core.hpp"

namespace moetier::cli {

std::string load_sentence(double load_average) {
  return fmt::format("load average {:.2f} at the start{}", load_average,
                     load_average > k_load_quiet ? ": too busy for figures that last" : "");
}

exit_code print_report(bench_report report, bool json, bool markdown,
                       std::span<const figure_demand> demands, std::span<const figure_kind> kinds) {
  const std::vector<std::string> broken = unmet(demands, kinds, report.figures);
  if (json) {
    report.document["errors"] = broken.size();
    if (!broken.empty()) report.document["unmet"] = broken;
    std::fputs((report.document.dump(1) + "\n").c_str(), stdout);
  } else {
    for (const table& t : report.tables)
      std::fputs(((markdown ? t.markdown() : t.text()) + "\n").c_str(), stdout);
    std::fputs((report.below + "\n").c_str(), stdout);
  }
  for (const std::string& sentence : broken)
    std::fputs(fmt::format("moetier: {}\n", sentence).c_str(), stderr);
  return broken.empty() ? exit_code::done : exit_code::check_failed;
}

}  // namespace moetier::cli
