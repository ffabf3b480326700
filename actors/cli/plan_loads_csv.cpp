#include <charconv>
#include <map>

#include <fmt/core.h>

#include "actors/cli/plan_loads.hpp"
#include "schemas/base/limits.hpp"
#include "schemas/file/printable.hpp"

namespace moetier::cli {
namespace {

std::string_view trimmed(std::string_view cell) {
  const auto first = cell.find_first_not_of(" \t\r\"");
  if (first == std::string_view::npos) return {};
  return cell.substr(first, cell.find_last_not_of(" \t\r\"") - first + 1);
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (;;) {
    const auto comma = line.find(',');
    cells.push_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

bool number_of(std::string_view cell, std::uint64_t& into) {
  const auto [end, wrong] = std::from_chars(cell.data(), cell.data() + cell.size(), into);
  return wrong == std::errc{} && end == cell.data() + cell.size() && !cell.empty();
}

}  // namespace

expected<read_loads> loads_from_csv(std::string_view text, const std::string& file,
                                    std::uint32_t experts) {
  const auto refuse = [&](const std::string& what) {
    return fail(reason::file_malformed, file, what);
  };
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // as spreadsheets write
  std::map<std::uint16_t, std::vector<std::uint64_t>> by_layer;
  std::size_t number = 0;
  std::size_t rows = 0;
  std::size_t width = 0;  // experts of a row; 0 = the head has not been seen
  while (!text.empty()) {
    const auto end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    if (trimmed(line).empty()) continue;
    const auto cells = cells_of(line);
    if (width == 0) {  // the head: without it a row could as well begin with a load
      if (cells[0] != "layer")
        return refuse(fmt::format("line {} begins with {}; the head layer,e0,e1,... is needed",
                                  number, printable(cells[0])));
      width = cells.size() - 1;
      for (std::size_t e = 0; e < width; ++e) {
        if (cells[e + 1] != fmt::format("e{}", e))
          return refuse(fmt::format("line {}, column {} is headed {}; e{} is expected", number,
                                    e + 2,
                                    cells[e + 1].empty() ? "nothing" : printable(cells[e + 1]), e));
      }
      if (width == 0 || width > k_experts_max || (experts != 0 && width != experts)) {
        return refuse(fmt::format("line {} names {} experts; {} expected", number, width,
                                  experts != 0 ? fmt::format("{} are", experts)
                                               : fmt::format("1 to {} are", k_experts_max)));
      }
      continue;
    }
    std::uint64_t layer = 0;
    if (!number_of(cells[0], layer))
      return refuse(fmt::format("line {} begins with {}; a layer's number is needed", number,
                                printable(cells[0])));
    if (layer >= 65536)
      return refuse(fmt::format("line {}: layer {} is above 65535", number, layer));
    if (cells.size() != width + 1) {
      return refuse(fmt::format("line {} has {} numbers after the layer; {} are expected{}", number,
                                cells.size() - 1, width,
                                line.find('"') == std::string_view::npos
                                    ? ""
                                    : "; a comma parts numbers inside quotes too"));
    }
    auto& sum = by_layer[static_cast<std::uint16_t>(layer)];
    sum.resize(width, 0);
    for (std::size_t e = 0; e < width; ++e) {
      std::uint64_t count = 0;
      if (!number_of(cells[e + 1], count)) {
        return refuse(fmt::format("line {}, expert {}: {} is no whole number", number, e,
                                  cells[e + 1].empty() ? "nothing" : printable(cells[e + 1])));
      }
      if (__builtin_add_overflow(sum[e], count, &sum[e]))
        return refuse(fmt::format("line {}, expert {}: the sum is beyond 64 bits", number, e));
    }
    ++rows;
  }
  if (by_layer.empty()) return refuse("it has no row of loads");
  read_loads out;
  out.loads.experts = static_cast<std::uint32_t>(width);
  for (auto& [layer, counts] : by_layer) {
    out.loads.layers.push_back(layer_id{layer});
    out.loads.counts.push_back(std::move(counts));
  }
  out.told =
      fmt::format("{}: {} row(s) of {} layer(s), {} experts", file, rows, by_layer.size(), width);
  return out;
}

}  // namespace moetier::cli
