#include <algorithm>
#include <cstdio>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "actors/cli/bench_document.hpp"
#include "actors/cli/bench_kernels.hpp"
#include "actors/cli/commands.hpp"
#include "actors/cli/table.hpp"

namespace moetier::cli {
namespace {

using nlohmann::ordered_json;

using figures_fn = expected<std::vector<kernel_figures>> (*)(const kernel_bench_options& options);

ordered_json json_of(const kernel_figures& f) {
  ordered_json row{{"kernel", f.kernel}, {"shape", f.shape}, {"unit", f.unit}};
  for (const auto& [form, value] : f.forms) row["forms"][form] = value;
  row["ratio"] = f.ratio();
  if (f.aim > 0) row["aim"] = f.aim;
  for (const auto& [name, value] : f.more) row[name] = value;
  if (!f.note.empty()) row["note"] = f.note;
  row["agrees"] = f.agrees;
  return row;
}

std::string markdown_of(const char* name, const std::vector<kernel_figures>& figures) {
  std::string text =
      fmt::format("| {} | shape | unit | forms | ratio | aim |\n|---|---|---|---|--:|--:|\n", name);
  for (const kernel_figures& f : figures) {
    std::string forms;
    for (const auto& [form, value] : f.forms)
      forms += fmt::format("{}{} {:.1f}", forms.empty() ? "" : ", ", form, value);
    text += fmt::format("| {} | {} | {} | {} | {:.2f} | {} |\n", f.kernel, f.shape, f.unit,
                        f.agrees ? forms : "forms disagree", f.ratio(),
                        f.aim > 0 ? fmt::format("{:.1f}", f.aim) : "-");
  }
  return text;
}

std::string text_of(const char* name, const std::vector<kernel_figures>& figures) {
  table t({name, "shape", "unit", "forms", "ratio", "aim", "agrees", "note"});
  for (const kernel_figures& f : figures) {
    std::string forms;
    for (const auto& [form, value] : f.forms)
      forms += fmt::format("{}{} {:.1f}", forms.empty() ? "" : "  ", form, value);
    t.add({f.kernel, f.shape, f.unit, forms, fmt::format("{:.2f}", f.ratio()),
           f.aim > 0 ? fmt::format("{:.1f}", f.aim) : "-", f.agrees ? "yes" : "NO", f.note});
  }
  return t.text();
}

// A part that compares forms of a kernel.
template <figures_fn Run>
expected<part_report> compare(const char* name, const kernel_bench_options& options) {
  const auto figures = Run(options);
  if (!figures) return tl::unexpected(figures.error());
  part_report report;
  for (const kernel_figures& f : *figures) {
    report.errors += f.agrees ? 0U : 1U;
    report.rows.push_back(json_of(f));
  }
  std::string text = options.markdown ? markdown_of(name, *figures) : text_of(name, *figures);
  text.pop_back();  // say() ends the line
  options.say(text);
  return report;
}

struct part {
  const char* name;
  std::string_view where;  // "cpu" or "device"
  expected<part_report> (*run)(const char* name, const kernel_bench_options& options);
};

constexpr part k_parts[] = {
    {"routing", "cpu", compare<bench_routing>},
    {"combine", "cpu", compare<bench_combine>},
    {"cpu", "cpu", [](const char*, const kernel_bench_options& o) { return bench_cpu(o); }},
    {"experts", "cpu", compare<bench_experts>},
    {"device", "device",
     [](const char*, const kernel_bench_options& o) { return bench_device(o); }},
};

// Backends that have a bench: where it runs, and the device part's format.
struct backend_bench {
  std::string_view name, where, format;
};
constexpr backend_bench k_backends[] = {
    {"cpu_avx2", "cpu", ""}, {"sm90_fp8", "device", "fp8_block"}, {"sm90_bf16", "device", "bf16"}};

template <class Table>
std::string names_of(const Table& entries) {
  std::string names;
  for (const auto& e : entries) names += fmt::format("{}{}", names.empty() ? "" : ", ", e.name);
  return names;
}

}  // namespace

double kernel_figures::ratio() const noexcept {
  return forms.size() < 2 ? 0 : forms.front().second / forms.back().second;
}

expected<exit_code> run_bench_kernels(const command_line& line) {
  // The table goes to standard output; beside a JSON document it goes where it disturbs none.
  std::FILE* const lines = line.json ? stderr : stdout;
  kernel_bench_options options{.seed = line.kernels.seed,
                               .repeat = line.kernels.repeat,
                               .shape = line.kernels.shape,
                               .format = line.kernels.format,
                               .rows = line.kernels.rows,
                               .backend = line.kernels.backend,
                               .peer = line.kernels.peer,
                               .markdown = line.kernels.markdown,
                               .say = [lines](const std::string& text) {
                                 std::fputs((text + "\n").c_str(), lines);
                                 std::fflush(lines);
                               }};
  std::string_view where;  // empty = anywhere
  if (!options.backend.empty()) {
    const auto* const found =
        std::find_if(std::begin(k_backends), std::end(k_backends),
                     [&](const backend_bench& b) { return b.name == options.backend; });
    if (found == std::end(k_backends))
      return fail(reason::config_invalid, "--backend", options.backend, names_of(k_backends));
    where = found->where;
    if (!found->format.empty()) options.format = found->format;
  }
  const std::string& asked = line.kernels.part;
  const auto is_asked = [&](const part& p) {
    return (asked.empty() || asked == p.name) && (where.empty() || where == p.where);
  };
  if (std::none_of(std::begin(k_parts), std::end(k_parts), is_asked))
    return fail(reason::config_invalid, "--part", asked, names_of(k_parts));
  ordered_json document = bench_document("kernels");
  document["problem"] = {{"seed", options.seed}, {"repeat", options.repeat}};
  std::size_t errors = 0;
  for (const part& p : k_parts) {
    if (!is_asked(p)) continue;
    const auto report = p.run(p.name, options);
    if (!report) return tl::unexpected(report.error());
    errors += report->errors;
    document["parts"][p.name] = report->rows;
    if (!report->more.is_null()) document[p.name] = report->more;
    if (!report->skipped.empty()) {
      document["skipped"][p.name] = report->skipped;
      options.say(report->skipped);
    }
  }
  document["errors"] = errors;
  if (line.json) std::fputs((document.dump(1) + "\n").c_str(), stdout);
  return errors == 0 ? exit_code::done : exit_code::check_failed;
}

}  // namespace moetier::cli
