#include "actors/cli/plan_loads.hpp"

#include "schemas/file/input_file.hpp"

namespace moetier::cli {
namespace {

constexpr std::size_t k_csv_bytes_max = std::size_t{64} << 20;

}  // namespace

expected<read_loads> read_plan_loads(const load_source& source) {
  if (!source.counts.empty() && !source.trace.empty())
    return fail(reason::config_invalid, "--trace", source.trace, "--counts or --trace, not both");
  if (!source.trace.empty()) return loads_from_trace(source);
  if (!source.counts.ends_with(".csv")) return loads_from_counts(source);
  const auto text = input_file::read_text(source.counts, k_csv_bytes_max);
  if (!text) return tl::unexpected(text.error());
  return loads_from_csv(*text, source.counts, source.experts);
}

}  // namespace moetier::cli
