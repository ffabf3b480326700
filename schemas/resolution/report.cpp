#include "schemas/resolution/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moetier::resolution {
namespace {

std::string on_workers(const std::vector<std::string>& workers) {
  return workers.empty() ? "" : fmt::format(" (on {})", fmt::join(workers, ", "));
}

void add(std::string& text, std::string_view kind, const std::vector<rejection>& rejected,
         const std::vector<possibility>& possible) {
  for (const rejection& r : rejected)
    text += fmt::format("{} {}: {}: {}{}\n", kind, r.candidate, reject_name(r.why), r.detail,
                        on_workers(r.workers));
  for (const possibility& p : possible)
    text += fmt::format("{} {}: possible: unknown {}{}\n", kind, p.candidate,
                        fmt::join(p.unknown, ", "), on_workers(p.workers));
}

}  // namespace

std::string describe(const resolution_report& r) {
  if (r.winner.empty())
    return fmt::format("backend {} {}: {} candidate{} rejected, {} possible", r.requested,
                       word_of(r.selected), r.rejected.size(), r.rejected.size() == 1 ? "" : "s",
                       r.possible.size());
  std::string text =
      fmt::format("backend {} ({}", r.winner, r.degraded() ? "degraded" : word_of(r.selected));
  if (r.degraded())
    text +=
        fmt::format(" from {}", r.degraded_from.empty() ? r.requested : r.degraded_from.front());
  text += fmt::format("), carrier {}", r.communication.winner);
  if (!r.communication.fallback.empty())
    text += fmt::format(" (fallback {})", r.communication.fallback);
  if (!r.routing.kernel.empty()) text += fmt::format(", routing {}", r.routing.kernel);
  return text + fmt::format(", {} answers in {}, resolution {:016x}", word_of(r.what.return_mode),
                            dtype_name(r.combine_dtype), r.resolution_id);
}

std::string describe_rejections(const resolution_report& r) {
  std::string text;
  add(text, "backend", r.rejected, r.possible);
  add(text, "carrier", r.communication.rejected, r.communication.possible);
  return text;
}

}  // namespace moetier::resolution
