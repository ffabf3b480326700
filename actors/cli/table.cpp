#include "actors/cli/table.hpp"

#include <algorithm>

#include <fmt/core.h>

namespace moetier::cli {
namespace {

bool is_number(const std::string& cell) {
  return !cell.empty() && cell.find_first_not_of("0123456789.%-") == std::string::npos;
}

}  // namespace

std::string table::text() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string out;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    std::string line;
    for (std::size_t c = 0; c < rows_[r].size(); ++c) {
      // A head stands as its column does.
      const std::string& kind = r == 0 && rows_.size() > 1 ? rows_[1][c] : rows_[r][c];
      line += is_number(kind) ? fmt::format("{:>{}}  ", rows_[r][c], widths[c])
                              : fmt::format("{:<{}}  ", rows_[r][c], widths[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string table::markdown() const {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string text = "|";
    for (const std::string& cell : cells) text += fmt::format(" {} |", cell);
    return text + "\n";
  };
  std::string out = line(rows_.front()) + "|";
  const auto& kinds = rows_.size() > 1 ? rows_[1] : rows_.front();
  for (const std::string& cell : kinds) out += is_number(cell) ? "--:|" : "---|";
  out += "\n";
  for (std::size_t r = 1; r < rows_.size(); ++r) out += line(rows_[r]);
  return out;
}

}  // namespace moetier::cli
