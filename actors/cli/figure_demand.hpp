#pragma once
// `--assert FIGURE=VALUE` of a bench: what one of its figures must keep to, in every row that has
// it. A time, a cost or a count of echoes may be at most VALUE; a rate or a share of a ceiling must
// be at least VALUE. An unmet one is exit code 8. Thread: any (values, pure functions).

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/base/error.hpp"

namespace moetier::cli {

struct figure_demand {
  std::string figure;
  double value = 0;

  bool operator==(const figure_demand&) const = default;
};

// A figure that a bench lets one demand something of.
struct figure_kind {
  std::string_view name;
  bool at_least = false;  // else at most
};

struct measured_figure {
  std::string_view name;
  std::string row;  // which row of the table it stands in
  double value = 0;
};

// "cost=1.3"; nothing unless it is NAME=NUMBER with a finite number.
std::optional<figure_demand> parse_demand(std::string_view text);

// reason::config_invalid with the bench's figures when one is demanded that it does not have. To be
// asked before anything is measured.
expected<void> check_demands(std::span<const figure_demand> demands,
                             std::span<const figure_kind> kinds);

// One sentence for each figure that breaks a demand. A demand that no row has a figure for is unmet
// too: it was not shown. Requires: check_demands() holds.
std::vector<std::string> unmet(std::span<const figure_demand> demands,
                               std::span<const figure_kind> kinds,
                               std::span<const measured_figure> figures);

}  // namespace moetier::cli
