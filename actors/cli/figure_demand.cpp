#include "actors/cli/figure_demand.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/core.h>

#include "schemas/base/assert.hpp"

namespace moetier::cli {
namespace {

const figure_kind* find_kind(std::span<const figure_kind> kinds, std::string_view name) {
  const auto found = std::find_if(kinds.begin(), kinds.end(),
                                  [&](const figure_kind& k) { return k.name == name; });
  return found == kinds.end() ? nullptr : &*found;
}

}  // namespace

std::optional<figure_demand> parse_demand(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos) return std::nullopt;
  figure_demand d{.figure = std::string(text.substr(0, equals))};
  const std::string_view number = text.substr(equals + 1);
  const auto [end, failure] =
      std::from_chars(number.data(), number.data() + number.size(), d.value);
  const bool whole = failure == std::errc{} && end == number.data() + number.size();
  if (!whole || !std::isfinite(d.value)) return std::nullopt;
  return d;
}

expected<void> check_demands(std::span<const figure_demand> demands,
                             std::span<const figure_kind> kinds) {
  for (const figure_demand& d : demands) {
    if (find_kind(kinds, d.figure) != nullptr) continue;
    std::string names;
    for (const figure_kind& k : kinds)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", k.name);
    return fail(reason::config_invalid, "--assert", d.figure, names);
  }
  return {};
}

std::vector<std::string> unmet(std::span<const figure_demand> demands,
                               std::span<const figure_kind> kinds,
                               std::span<const measured_figure> figures) {
  std::vector<std::string> sentences;
  for (const figure_demand& d : demands) {
    const figure_kind* const kind = find_kind(kinds, d.figure);
    MOETIER_ASSERT(kind != nullptr);
    bool shown = false;
    for (const measured_figure& f : figures) {
      if (f.name != d.figure) continue;
      shown = true;
      // Written so that a value that is no number meets nothing.
      const bool met = kind->at_least ? f.value >= d.value : f.value <= d.value;
      if (met) continue;
      sentences.push_back(fmt::format("{} is {:.4g} ({}); demanded: {} {:.4g}", d.figure, f.value,
                                      f.row, kind->at_least ? "at least" : "at most", d.value));
    }
    if (!shown) sentences.push_back(fmt::format("{} was not measured in this run", d.figure));
  }
  return sentences;
}

}  // namespace moetier::cli
