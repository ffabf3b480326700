#include "actors/cli/bench_plan_loads.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/core.h>

#include "actors/cli/integer_tensor.hpp"
#include "schemas/file/printable.hpp"

namespace moetier::cli {
namespace {

constexpr std::size_t k_sources = 32;
constexpr std::size_t k_selections = 1024;  // of a source in a batch
constexpr std::size_t k_batches = 12;       // of a window
constexpr double k_concentration = 450;     // of the sources' Dirichlet vectors
constexpr double k_layer_selections = 1e6;  // of a planned layer

std::vector<double> around(const std::vector<double>& p, std::mt19937_64& random) {
  std::vector<double> own(p.size());
  double sum = 0;
  for (std::size_t e = 0; e < p.size(); ++e) {
    std::gamma_distribution<double> gamma(std::max(k_concentration * p[e], 1e-6), 1);
    own[e] = gamma(random);
    sum += own[e];
  }
  for (double& v : own) v /= sum;
  return own;
}

std::vector<std::int32_t> draws(const std::vector<double>& p, std::mt19937_64& random) {
  std::vector<double> edges(p.size());
  double sum = 0;
  for (std::size_t e = 0; e < p.size(); ++e) edges[e] = sum += p[e];
  std::uniform_real_distribution<double> uniform(0, sum);
  std::vector<std::int32_t> ids(k_selections);
  for (std::int32_t& id : ids) {
    const auto at = std::upper_bound(edges.begin(), edges.end() - 1, uniform(random));
    id = static_cast<std::int32_t>(at - edges.begin());
  }
  return ids;
}

std::vector<double> softmax(const std::vector<double>& theta, double factor) {
  std::vector<double> p(theta.size());
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += p[i] = std::exp(factor * theta[i]);
  for (double& v : p) v /= sum;
  return p;
}

void count(trace_batch& b, std::size_t experts) {
  b.counts.assign(experts, 0);
  for (const auto& source : b.ids)
    for (const std::int32_t e : source) ++b.counts[static_cast<std::size_t>(e)];
}

}  // namespace

expected<domain_totals> read_domains(const std::string& path) {
  auto file = tensor_file::open(path);
  if (!file) return tl::unexpected(file.error());
  domain_totals d;
  for (const tensor_info& t : (*file)->header().tensors) {
    if (t.rank != 2 || t.sizes[0] == 0 || t.sizes[1] == 0 ||
        (!d.counts.empty() &&
         (t.sizes[0] != d.counts[0].size() || t.sizes[1] != d.counts[0][0].size()))) {
      return fail(reason::file_malformed, path,
                  fmt::format("tensor {} is not [layer, expert] as the others", printable(t.name)));
    }
    const auto numbers = read_integers(**file, t);
    if (!numbers) return tl::unexpected(numbers.error());
    for (std::size_t i = 0; i < numbers->size(); ++i) {
      if ((*numbers)[i] >= 0) continue;
      return fail(reason::file_malformed, path,
                  fmt::format("tensor {} layer {} expert {}: {} is no count", printable(t.name),
                              i / t.sizes[1], i % t.sizes[1], (*numbers)[i]));
    }
    d.names.push_back(t.name);
    d.counts.emplace_back();
    for (std::size_t l = 0; l < t.sizes[0]; ++l) {
      const auto row = numbers->begin() + static_cast<std::ptrdiff_t>(l * t.sizes[1]);
      d.counts.back().emplace_back(row, row + static_cast<std::ptrdiff_t>(t.sizes[1]));
    }
  }
  if (d.counts.empty()) return fail(reason::file_malformed, path, "it has no domain");
  return d;
}

std::size_t wide_layers(const domain_totals& d, std::uint32_t experts) {
  const std::size_t narrow = d.counts[0][0].size();
  return experts % narrow == 0 ? d.counts[0].size() / (experts / narrow) : 0;
}

unexpected_error fits_no_shape(const domain_totals& d, const std::string& path) {
  return fail(reason::file_malformed, path,
              fmt::format("its {} layers of {} experts fit no shape that is measured",
                          d.counts[0].size(), d.counts[0][0].size()));
}

std::vector<std::vector<double>> wide_layer(const domain_totals& d, std::uint32_t experts,
                                            std::size_t layer) {
  const std::size_t narrow = d.counts[0][0].size();
  const std::size_t beside = experts / narrow;
  std::vector<std::vector<double>> wide(d.counts.size());
  for (std::size_t domain = 0; domain < d.counts.size(); ++domain) {
    for (std::size_t part = 0; part < beside; ++part) {
      const auto& counts = d.counts[domain][layer * beside + part];
      double sum = 0;
      for (const std::uint64_t c : counts) sum += static_cast<double>(c) + 0.5;
      for (const std::uint64_t c : counts)
        wide[domain].push_back((static_cast<double>(c) + 0.5) / sum / static_cast<double>(beside));
    }
  }
  return wide;
}

std::vector<std::vector<std::uint64_t>> synthetic_loads(double lognormal_sigma, double zipf_power,
                                                        std::uint32_t experts, std::uint32_t layers,
                                                        std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> lognormal(0, lognormal_sigma);
  std::vector<std::vector<std::uint64_t>> all;
  for (std::uint32_t l = 0; l < layers; ++l) {
    std::vector<double> w(experts);
    double sum = 0;
    for (std::uint32_t e = 0; e < experts; ++e)
      sum += w[e] = zipf_power > 0 ? std::pow(e + 1.0, -zipf_power) : lognormal(random);
    std::shuffle(w.begin(), w.end(), random);
    all.emplace_back();
    for (const double v : w)
      all.back().push_back(static_cast<std::uint64_t>(std::lround(v / sum * k_layer_selections)));
  }
  return all;
}

std::vector<std::vector<std::uint64_t>> recorded_loads(const domain_totals& d,
                                                       std::uint32_t experts, std::uint32_t layers,
                                                       std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<std::vector<std::uint64_t>> all;
  for (std::uint32_t l = 0; l < layers; ++l) {
    const auto domains = wide_layer(d, experts, l % wide_layers(d, experts));
    std::vector<double> theta(domains.size());
    for (double& t : theta) t = normal(random);
    const auto part = softmax(theta, 2);
    all.emplace_back(experts, 0);
    for (std::uint32_t e = 0; e < experts; ++e) {
      double p = 0;
      for (std::size_t i = 0; i < domains.size(); ++i) p += part[i] * domains[i][e];
      all.back()[e] = static_cast<std::uint64_t>(std::lround(p * k_layer_selections));
    }
  }
  return all;
}

std::string drift_name(drift_kind k) {
  constexpr const char* names[] = {"stationary", "mild", "mild, persistent", "strong",
                                   "hard switch"};
  return names[static_cast<std::size_t>(k)];
}

drifting_layer::drifting_layer(std::vector<std::vector<double>> domains, drift_kind kind,
                               std::uint64_t seed)
    : domains_(std::move(domains)), kind_(kind), random_(seed), theta_(domains_.size()) {
  std::normal_distribution<double> normal;
  for (double& t : theta_) t = normal(random_);
}

std::vector<double> drifting_layer::mixture() {
  const double s = kind_ == drift_kind::stationary ? 0 : kind_ == drift_kind::strong ? 1.2 : 0.4;
  std::vector<double> part;
  if (kind_ == drift_kind::hard_switch) {  // one domain for six windows, then the next
    part.assign(domains_.size(), 0);
    part[window_ / 6 % domains_.size()] = 1;
  } else {
    if (window_ > 0 && s > 0) {
      std::normal_distribution<double> normal;
      for (double& t : theta_) t = std::sqrt(1 - s * s / 4) * t + s / 2 * normal(random_);
    }
    part = softmax(theta_, 2);
  }
  std::vector<double> p(domains_[0].size(), 0);
  for (std::size_t i = 0; i < domains_.size(); ++i)
    for (std::size_t e = 0; e < p.size(); ++e) p[e] += part[i] * domains_[i][e];
  return p;
}

trace_window drifting_layer::next() {
  const auto p = mixture();
  trace_window window(k_batches);
  std::vector<std::vector<double>> own;
  for (std::size_t b = 0; b < k_batches; ++b) {
    if (b == 0 || kind_ != drift_kind::mild_persistent) {
      own.clear();
      for (std::size_t s = 0; s < k_sources; ++s) own.push_back(around(p, random_));
    }
    for (std::size_t s = 0; s < k_sources; ++s) window[b].ids.push_back(draws(own[s], random_));
    count(window[b], p.size());
  }
  ++window_;
  return window;
}

expected<std::vector<std::vector<trace_window>>> recorded_windows(const std::string& path,
                                                                  std::uint32_t experts) {
  constexpr std::size_t k_trace_sources = 4;
  constexpr std::size_t k_rows = 32;  // of a source in a batch
  auto file = tensor_file::open(path);
  if (!file) return tl::unexpected(file.error());
  std::map<std::string, std::vector<trace_window>> by_layer;  // domains in order of their names
  for (const tensor_info& t : (*file)->header().tensors) {
    const auto dot = t.name.rfind('.');
    if (t.rank != 2 || dot == std::string::npos)
      return fail(reason::file_malformed, path,
                  fmt::format("tensor {} is no trace", printable(t.name)));
    const auto ids = read_integers(**file, t);
    if (!ids) return tl::unexpected(ids.error());
    if (ids->empty()) continue;
    const std::size_t of_source = k_rows * t.sizes[1];
    const std::size_t of_window = k_batches * k_trace_sources * of_source;
    for (std::size_t at = 0; at + of_window <= ids->size(); at += of_window) {
      trace_window window(k_batches);
      std::size_t next = at;
      for (trace_batch& b : window) {
        for (std::size_t s = 0; s < k_trace_sources; ++s, next += of_source) {
          b.ids.emplace_back();
          for (std::size_t i = next; i < next + of_source; ++i) {
            if ((*ids)[i] < 0 || (*ids)[i] >= std::int64_t{experts})
              return fail(
                  reason::file_malformed, path,
                  fmt::format("tensor {}: expert {} of {}", printable(t.name), (*ids)[i], experts));
            b.ids.back().push_back(static_cast<std::int32_t>((*ids)[i]));
          }
        }
        count(b, experts);
      }
      by_layer[t.name.substr(dot + 1)].push_back(std::move(window));
    }
  }
  std::vector<std::vector<trace_window>> all;
  for (auto& [name, windows] : by_layer) all.push_back(std::move(windows));
  return all;
}

}  // namespace moetier::cli
