#include "schemas/resolution/agreement.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/core.h>

namespace moetier::resolution {
namespace {

constexpr std::array<std::string_view, 6> k_must_match{"architecture",       "numerics_routing",
                                                       "numerics_quantiser", "numerics_combine",
                                                       "numeric_flags",      "kernel_set_hash"};

// The value of one field as people read it.
class shown_field final {
 public:
  explicit shown_field(std::string_view name) : name_(name) {}

  template <class T>
  void operator()(std::string_view name, const T& value) {
    if (name == name_) text_ = shown(value);
  }

  const std::string& text() const noexcept { return text_; }

 private:
  static std::string shown(const std::optional<std::string>& value) {
    if (!value) return "unknown";
    return value->empty() ? "none" : *value;
  }
  static std::string shown(const std::optional<std::uint32_t>& value) {
    return value ? fmt::format("{}", *value) : "unknown";
  }
  template <class T>
  static std::string shown(const T&) {
    return {};  // no such field must match
  }

  std::string_view name_;
  std::string text_;
};

bool all_equal(const disagreement& d) {
  return std::all_of(d.values.begin(), d.values.end(),
                     [&](const auto& v) { return v.second == d.values.front().second; });
}

void compare_layouts(std::span<const named_environment> workers, std::vector<disagreement>& all) {
  std::set<std::string> kernels;
  for (const named_environment& w : workers) {
    for (const auto& [kernel, layout] : w.seen.layouts) kernels.insert(kernel);
  }
  for (const std::string& kernel : kernels) {
    disagreement d{.field = fmt::format("layouts.{}", kernel), .values = {}};
    for (const named_environment& w : workers) {
      const auto at = w.seen.layouts.find(kernel);
      if (at != w.seen.layouts.end()) d.values.emplace_back(w.worker, at->second);
    }
    if (!all_equal(d)) all.push_back(std::move(d));
  }
}

}  // namespace

std::span<const std::string_view> must_match(answer_mode mode) noexcept {
  return std::span(k_must_match).first(k_must_match.size() - (mode == answer_mode::exact ? 0 : 1));
}

std::vector<disagreement> compare(std::span<const named_environment> workers, answer_mode mode) {
  std::vector<disagreement> all;
  for (const std::string_view name : must_match(mode)) {
    disagreement d{.field = std::string(name), .values = {}};
    for (const named_environment& w : workers) {
      shown_field field(name);
      walk(w.seen, field);
      d.values.emplace_back(w.worker, field.text());
    }
    if (!all_equal(d)) all.push_back(std::move(d));
  }
  compare_layouts(workers, all);
  return all;
}

std::string sentence_of(std::span<const disagreement> all) {
  std::string text;
  for (const disagreement& d : all) {
    text += fmt::format("{}{} is ", text.empty() ? "" : "; ", d.field);
    for (std::size_t i = 0; i < d.values.size(); ++i)
      text += fmt::format("{}{} on {}", i == 0 ? "" : ", ", d.values[i].second, d.values[i].first);
  }
  return text;
}

}  // namespace moetier::resolution
