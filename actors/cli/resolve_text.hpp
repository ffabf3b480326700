#pragma once
// A resolution report as people read it: what runs, then every candidate with its answer. Thread:
// any (pure).

#include <string>

#include "schemas/resolution/report.hpp"

namespace moetier::cli {

std::string resolve_text(const resolution::resolution_report& report, const std::string& model);

}  // namespace moetier::cli
