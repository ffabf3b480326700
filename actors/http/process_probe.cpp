#include "actors/build_info.hpp"
#include "actors/http/metric_text.hpp"

namespace moetier::http {

void add_process_families(metric_text& to, std::uint64_t log_lines_dropped) {
  const build_info& build = this_build();
  to.gauge("build_info", "What this process was built from.");
  to.sample(1.0, {{"version", std::string(build.version)}, {"commit", std::string(build.commit)}});
  to.counter("log_lines_dropped_total", "Log lines over the limit of their event.");
  to.sample(log_lines_dropped);
}

}  // namespace moetier::http
