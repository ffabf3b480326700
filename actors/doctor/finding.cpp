#include "actors/doctor/finding.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace moetier::doctor {
namespace {

constexpr std::array<std::string_view, 4> k_names{"PASS", "SKIP", "WARN", "FAIL"};

std::array<std::size_t, 4> counts_of(const findings& all) noexcept {
  std::array<std::size_t, 4> counts{};
  for (const finding& f : all) ++counts[static_cast<std::size_t>(f.what)];
  return counts;
}

// Names of devices and files are the machine's: whatever they hold, a finding stays on its line.
std::string on_one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

}  // namespace

std::string rough_size(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> k_units{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < k_units.size(); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, k_units[unit]);
}

std::string_view verdict_name(verdict v) noexcept { return k_names[static_cast<std::size_t>(v)]; }

finding pass(std::string check, std::string seen) {
  return {std::move(check), verdict::pass, std::move(seen), {}};
}
finding skip(std::string check, std::string why) {
  return {std::move(check), verdict::skip, std::move(why), {}};
}
finding warn(std::string check, std::string seen, std::string remedy) {
  return {std::move(check), verdict::warn, std::move(seen), std::move(remedy)};
}
finding failure(std::string check, std::string seen, std::string remedy) {
  return {std::move(check), verdict::fail, std::move(seen), std::move(remedy)};
}

verdict worst_of(const findings& all) noexcept {
  verdict worst = verdict::pass;
  for (const finding& f : all) worst = std::max(worst, f.what);
  return worst;
}

std::string findings_text(const findings& all) {
  std::size_t width = 0;
  for (const finding& f : all) width = std::max(width, f.check.size());
  std::string out;
  for (const finding& f : all) {
    out += fmt::format("{}  {:<{}}  {}", verdict_name(f.what), f.check, width, on_one_line(f.seen));
    if (!f.remedy.empty()) out += fmt::format("; remedy: {}", on_one_line(f.remedy));
    out += '\n';
  }
  const auto counts = counts_of(all);
  return out + fmt::format("\n{} passed, {} warned, {} failed, {} skipped\n", counts[0], counts[2],
                           counts[3], counts[1]);
}

std::string findings_json(const findings& all) {
  using json = nlohmann::ordered_json;
  json lines = json::array();
  for (const finding& f : all) {
    json line{{"check", f.check}, {"verdict", std::string(verdict_name(f.what))}, {"seen", f.seen}};
    if (!f.remedy.empty()) line["remedy"] = f.remedy;
    lines.push_back(std::move(line));
  }
  const auto counts = counts_of(all);
  const json document{{"schema", "moetier.doctor/1"}, {"passed", counts[0]},
                      {"warned", counts[2]},          {"failed", counts[3]},
                      {"skipped", counts[1]},         {"findings", std::move(lines)}};
  return document.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace moetier::doctor
