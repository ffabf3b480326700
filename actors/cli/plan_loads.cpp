#include "actors/cli/plan_loads.hpp"

#include <array>
#include <utility>

#include "schemas/file/input_file.hpp"

namespace moetier::cli {
namespace {

constexpr std::size_t k_csv_bytes_max = std::size_t{64} << 20;

// By its head or name; else safetensors, whose header is an object behind its length.
expected<bool> is_csv(const std::string& file) {
  if (file.ends_with(".csv")) return true;
  const auto opened = input_file::open(file);
  if (!opened) return tl::unexpected(opened.error());
  std::array<std::byte, 9> first{};
  if ((*opened)->size() >= first.size()) {
    if (auto read = (*opened)->read(0, first); !read) return tl::unexpected(read.error());
    std::string text;
    for (const std::byte b : first) text.push_back(static_cast<char>(b));
    if (text.find("layer") != std::string::npos) return true;  // after a mark or a quote
    if (text.back() == '{') return false;
  }
  return fail(reason::file_malformed, file,
              "it is neither CSV with the head layer,e0,e1,... nor safetensors");
}

}  // namespace

expected<read_loads> read_plan_loads(const load_source& source) {
  if (!source.counts.empty() && !source.trace.empty())
    return fail(reason::config_invalid, "--trace", source.trace, "--counts or --trace, not both");
  const std::string& file = source.trace.empty() ? source.counts : source.trace;
  const auto csv = is_csv(file);
  if (!csv) return tl::unexpected(csv.error());
  if (!source.trace.empty()) {
    if (*csv)
      return fail(reason::file_malformed, file,
                  "a trace is safetensors of expert ids; counts as CSV go to --counts");
    if (!source.axes.empty())
      return fail(reason::config_invalid, "--axes", source.axes, "only with --counts");
    return loads_from_trace(source);
  }
  if (!*csv) return loads_from_counts(source);
  const std::pair<const char*, const std::string&> of_tensors[] = {
      {"--prefix", source.prefix}, {"--tensor", source.tensor}, {"--axes", source.axes}};
  for (const auto& [flag, value] : of_tensors) {
    if (!value.empty())
      return fail(reason::config_invalid, flag, value, "only with safetensors; this is CSV");
  }
  const auto text = input_file::read_text(source.counts, k_csv_bytes_max);
  if (!text) return tl::unexpected(text.error());
  return loads_from_csv(*text, source.counts, source.experts);
}

}  // namespace moetier::cli
