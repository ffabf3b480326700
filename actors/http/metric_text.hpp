#pragma once
// A small builder of Prometheus families for the probes: name, help, type, then samples. Every
// name gets the prefix moetier_. Names end in their unit (_seconds, _bytes, _ratio) or, of counters
// alone, in _total. Includes the metrics library, so only probes include this.
// Thread: any (a value).

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include "schemas/base/histogram.hpp"
#include "schemas/base/time.hpp"

namespace moetier::http {

class metric_text final {
 public:
  using labels = std::vector<prometheus::ClientMetric::Label>;

  void gauge(std::string name, std::string help) {
    begin(std::move(name), std::move(help), prometheus::MetricType::Gauge);
  }
  void counter(std::string name, std::string help) {
    begin(std::move(name), std::move(help), prometheus::MetricType::Counter);
  }
  // Of the family begun last.
  void sample(double value, labels l = {}) {
    prometheus::ClientMetric m;
    m.label = std::move(l);
    m.gauge.value = value;
    m.counter.value = value;
    families_.back().metric.push_back(std::move(m));
  }
  void sample(std::uint64_t value, labels l = {}) {
    sample(static_cast<double>(value), std::move(l));
  }

  // A reading without bounds is none: nothing is shown. A histogram's readings are in `unit`s of
  // what is shown: nanoseconds as seconds by default.
  void histogram(std::string name, std::string help) {
    begin(std::move(name), std::move(help), prometheus::MetricType::Histogram);
  }
  void sample(const histogram_reading& r, labels l = {},
              double unit = 1.0 / static_cast<double>(k_second));

  std::string text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  void begin(std::string name, std::string help, prometheus::MetricType type) {
    families_.push_back({"moetier_" + std::move(name), std::move(help), type, {}});
  }
  std::vector<prometheus::MetricFamily> families_;
};

// The families that every role has.
void add_process_families(metric_text& to, std::uint64_t log_lines_dropped);

}  // namespace moetier::http
