// One core's products of bf16 weights, and whole experts: how near they come to what the core can
// do, and how they stand beside another library. Which sizes and rows, and how they are shown, is
// decided here; cpu_measure.hpp does the rest.
#include <charconv>
#include <new>

#include <fmt/core.h>

#include "actors/cli/bench_kernels.hpp"
#include "actors/cli/cpu_measure.hpp"
#include "kernels/backend.hpp"
#include "kernels/limits.hpp"
#include "schemas/file/printable.hpp"

namespace moetier::cli {
namespace {

constexpr std::uint32_t k_rows[] = {1, 4, 16, 64};
constexpr product_size k_sizes[] = {{2048, 768}, {768, 2048}};
constexpr std::uint32_t k_size_min = 16;
constexpr std::uint32_t k_size_max = 65536;
constexpr std::uint32_t k_samples_per_repeat = 4;

expected<product_size> parse_size(std::string_view text) {
  product_size size;
  const auto number = [](std::string_view part, std::uint32_t& into) {
    const auto [end, failure] = std::from_chars(part.data(), part.data() + part.size(), into);
    return failure == std::errc{} && end == part.data() + part.size() && into >= k_size_min &&
           into <= k_size_max;
  };
  const std::size_t cross = text.find('x');
  if (cross != text.npos && number(text.substr(0, cross), size.outputs) &&
      number(text.substr(cross + 1), size.depth))
    return size;
  return fail(
      reason::config_invalid, "--shape", printable(text),
      fmt::format("N x K of the cpu part, as 2048x768, each {} to {}", k_size_min, k_size_max));
}

struct choice {
  std::vector<product_size> sizes{std::begin(k_sizes), std::end(k_sizes)};
  std::vector<std::uint32_t> rows{std::begin(k_rows), std::end(k_rows)};
};

expected<choice> chosen(const kernel_bench_options& options) {
  choice c;
  if (!options.shape.empty()) {
    c.sizes.clear();
    for (std::string_view rest = options.shape; !rest.empty();) {
      const std::size_t end = std::min(rest.find(','), rest.size());
      const auto size = parse_size(rest.substr(0, end));
      if (!size) return tl::unexpected(size.error());
      c.sizes.push_back(*size);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  if (!options.rows.empty()) c.rows = options.rows;
  for (const std::uint32_t rows : c.rows) {
    if (rows < 1 || rows > kernels::k_block_rows_max)
      return fail(reason::config_invalid, "--rows", rows,
                  fmt::format("1 to {} of the cpu part", kernels::k_block_rows_max));
  }
  return c;
}

std::string ceilings_line(const cpu_figures& f) {
  return fmt::format(
      "one core, medians: fma {:.1f} GFLOP/s; reads memory at {:.1f} GB/s as one stream, {:.1f} as "
      "four",
      f.fma_gflops.median, f.read_gb_s_1.median, f.read_gb_s_4.median);
}

expected<part_report> measure_all(const choice& c, const found_peer& found,
                                  const kernel_bench_options& options) {
  const double load = load_average();
  const bool quiet = load <= k_load_quiet;
  const cpu_measure_options measured{
      .seed = options.seed,
      .samples = k_samples_per_repeat * options.repeat,
      .ring_bytes = options.ring_bytes > 0 ? options.ring_bytes : cold_ring_bytes()};
  std::vector<cpu_figures> all;
  const auto append = [&](std::vector<cpu_figures> more) {
    for (cpu_figures& f : more) all.push_back(std::move(f));
  };
  for (const product_size& size : c.sizes)
    append(measure_products(size, c.rows, found.peer, measured));
  auto experts = measure_experts(c.sizes.front(), c.rows, measured);
  if (!experts) return tl::unexpected(experts.error());
  append(std::move(*experts));

  part_report report;
  const std::string peer = found.peer != nullptr ? found.peer->name() : "";
  for (const cpu_figures& f : all) {
    report.rows.push_back(cpu_json(f, peer, quiet));
    report.errors += f.oracle.pass() ? 0U : 1U;
  }
  report.more = {
      {"load_average", {{"start", load}, {"end", load_average()}, {"most", k_load_quiet}}},
      {"peer", found.peer != nullptr ? peer : found.why}};
  options.say(cpu_table_text(all, peer, {.markdown = options.markdown}));
  if (options.markdown) options.say("");
  options.say(fmt::format("{}; load average {:.2f} at the start{}; {}", ceilings_line(all.front()),
                          load,
                          quiet ? ""
                                : fmt::format(", above {:.1f}: NOT A QUIET MACHINE, these "
                                              "figures say little",
                                              k_load_quiet),
                          found.peer != nullptr ? peer + " on one thread" : found.why));
  return report;
}

}  // namespace

expected<part_report> bench_cpu(const kernel_bench_options& options) {
  const auto c = chosen(options);
  if (!c) return tl::unexpected(c.error());
  const auto found = find_gemm_peer(options.peer);
  if (!found) return tl::unexpected(found.error());
  const auto runs = kernels::make_cpu_backend(
      "cpu_avx2", {.hidden_size = 16, .intermediate_size = 16}, {}, kernels::detect_cpu_features());
  if (!runs) {
    // Asked for by name it is an error; among all parts a sentence.
    if (!options.backend.empty()) return tl::unexpected(runs.error());
    return part_report{.skipped = fmt::format("cpu: skipped, {}", runs.error().text)};
  }
  try {
    return measure_all(*c, *found, options);
  } catch (const std::bad_alloc&) {
    return fail(reason::memory_insufficient, "weights of the cpu part", "too large",
                "fewer or smaller shapes");
  }
}

}  // namespace moetier::cli
