#pragma once
// How a bench that moves rows ends: its document or its table on standard output, the sentence
// below the table, unmet demands on standard error and as exit code 8. Thread: owner.

#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "actors/cli/exit_code.hpp"
#include "actors/cli/figure_demand.hpp"
#include "actors/cli/table.hpp"

namespace moetier::cli {

struct bench_report {
  nlohmann::ordered_json document;
  std::vector<table> tables;
  std::string below;  // what the figures are; one paragraph
  std::vector<measured_figure> figures;
};

// How busy the machine was when the bench began.
std::string load_sentence(double load_average);

exit_code print_report(bench_report report, bool json, bool markdown,
                       std::span<const figure_demand> demands, std::span<const figure_kind> kinds);

}  // namespace moetier::cli
