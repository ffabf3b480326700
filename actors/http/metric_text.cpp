#include "actors/http/metric_text.hpp"

#include <limits>

namespace moetier::http {

void metric_text::sample(const histogram_reading& r, labels l, double unit) {
  if (r.bounds.empty()) return;
  prometheus::ClientMetric m;
  m.label = std::move(l);
  // Shown as one instant: the count is that of the buckets, whatever was added meanwhile.
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < r.counts.size(); ++i) {
    below += r.counts[i];
    const double bound = i < r.bounds.size() ? static_cast<double>(r.bounds[i]) * unit
                                             : std::numeric_limits<double>::infinity();
    m.histogram.bucket.push_back({below, bound});
  }
  m.histogram.sample_count = below;
  m.histogram.sample_sum = static_cast<double>(r.sum) * unit;
  families_.back().metric.push_back(std::move(m));
}

}  // namespace moetier::http
