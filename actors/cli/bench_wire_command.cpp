#include <algorithm>
#include <cstring>
#include <string_view>

#include <fmt/core.h>

#include "actors/cli/bench_core.hpp"
#include "actors/cli/bench_document.hpp"
#include "actors/cli/bench_report.hpp"
#include "actors/cli/commands.hpp"
#include "actors/cli/exchange_echo.hpp"
#include "actors/cli/ucx_echo.hpp"
#include "actors/cli/wire_cell.hpp"

namespace moetier::cli {
namespace {

using nlohmann::ordered_json;

constexpr std::uint64_t k_mebibyte = 1ULL << 20;
constexpr std::uint32_t k_mebibyte_rows = 256;  // a message of whole MiB, as the protocol has rows
// Of one way and size, both directions together, and round trips at least.
constexpr std::uint64_t k_bytes_max = 1ULL << 30;
constexpr std::uint32_t k_calls_min = 20;
constexpr std::uint64_t k_message_max = 256 * k_mebibyte;
constexpr int k_copies = 25;
// Blocks of the allocator begin at nearly equal places in their pages; a copy to 16 bytes further
// on runs at 3 GB/s instead of 30 on Zen 3.
constexpr std::size_t k_copy_shift = 2112;

struct message {
  std::string size;
  std::uint32_t rows = 0;
  std::uint32_t row_bytes = 0;
  std::uint64_t bytes() const { return std::uint64_t{rows} * row_bytes; }
};

struct way {
  std::string_view name;
  std::string_view says;
  std::string_view transports;  // of a bare UCX echo
  std::string_view carrier;     // of moetier's own exchange
};
constexpr way k_ways[] = {
    {"shm", "bare UCX echo over shared memory", "posix,sysv,cma,self", ""},
    {"tcp", "bare UCX echo over loopback TCP", "tcp,self", ""},
    {"ucx", "moetier's exchange over its UCX carrier", "", "ucx"},
    {"shared_memory", "moetier's exchange over memory that both map", "", "shared_memory"},
    {"in_process", "moetier's exchange between threads", "", "in_process"}};

std::vector<message> messages_of(const wire_options& o) {
  std::vector<message> all;
  const auto row_bytes =
      static_cast<std::uint32_t>(transport::padded_stride(sizeof(float) * o.hidden_size));
  for (const std::uint32_t rows : o.rows)
    all.push_back({fmt::format("{} row{}", rows, rows == 1 ? "" : "s"), rows, row_bytes});
  for (const std::uint32_t mib : o.mebibytes) {
    if (mib == 0) continue;
    all.push_back({fmt::format("{} MiB", mib), k_mebibyte_rows,
                   static_cast<std::uint32_t>(mib * k_mebibyte / k_mebibyte_rows)});
  }
  return all;
}

// Large messages take their time, whatever was asked for.
std::uint32_t calls_of(const wire_options& o, const message& m) {
  const std::uint64_t affordable = k_bytes_max / (2 * m.bytes());
  return std::min(o.calls, std::max(k_calls_min, static_cast<std::uint32_t>(affordable)));
}

// Best rate of copying so many bytes from one place to another: a ceiling.
double copy_gb_s(std::uint64_t bytes) {
  const std::vector<std::byte> from(bytes, std::byte{1});
  std::vector<std::byte> block(bytes + k_copy_shift, std::byte{2});
  std::byte* const to = block.data() + k_copy_shift;
  // Small ones many times, so that the clock is not what is measured.
  const std::uint64_t turns = std::max<std::uint64_t>(1, k_mebibyte / bytes);
  double best = 0;
  for (int i = 0; i < k_copies; ++i) {
    const time_ns began = monotonic_now();
    for (std::uint64_t t = 0; t < turns; ++t) {
      std::memcpy(to, from.data(), bytes);
      asm volatile("" : : "r"(to) : "memory");  // or it is copied once
    }
    const auto took = static_cast<double>(std::max<duration_ns>(1, monotonic_now() - began));
    best = std::max(best, static_cast<double>(turns * bytes) / took);
  }
  return best;
}

expected<std::vector<std::uint64_t>> times_of(const way& w, const message& m,
                                              const transport::carrier_options& options,
                                              duration_ns spin, const wire_options& o) {
  const std::uint32_t calls = calls_of(o, m);
  const std::uint32_t warmup = std::min(o.warmup, calls);
  if (!w.carrier.empty()) {
    return exchange_times({.carrier = std::string(w.carrier),
                           .options = options,
                           .rows = m.rows,
                           .row_bytes = m.row_bytes,
                           .spin = spin,
                           .warmup = warmup,
                           .calls = calls});
  }
  return run_ucx_echo({.options = options,
                       .transports = std::string(w.transports),
                       .header_bytes = k_wire_header_bytes,
                       .out_bytes = m.bytes(),
                       .back_bytes = m.bytes(),
                       .warmup = warmup,
                       .calls = calls});
}

}  // namespace

expected<exit_code> run_bench_wire(const command_line& line, const config::settings& settings) {
  const wire_options& o = line.wire;
  if (const auto ok = check_demands(o.demands, k_wire_figures); !ok)
    return tl::unexpected(ok.error());
  for (const message& m : messages_of(o)) {
    if (m.bytes() > k_message_max)
      return fail(
          reason::config_invalid, "--rows", m.rows,
          fmt::format("1 to {} of {} bytes each", k_message_max / m.row_bytes, m.row_bytes));
  }
  const double load = load_average();
  const transport::carrier_options options{.listen = settings.transport.listen,
                                           .checksum_payload = settings.transport.checksum == "on",
                                           .allow_tcp = settings.transport.allow_tcp != "off"};
  std::vector<wire_cell> cells;
  std::string ways, skipped;
  for (const way& w : k_ways) {
    const bool asked =
        o.ways.empty() || std::find(o.ways.begin(), o.ways.end(), w.name) != o.ways.end();
    if (!asked) continue;
    ways += fmt::format("{}{}: {}", ways.empty() ? "" : "; ", w.name, w.says);
    for (const message& m : messages_of(o)) {
      wire_cell cell{.way = std::string(w.name),
                     .size = m.size,
                     .bytes_out = m.bytes(),
                     .bytes_back = m.bytes(),
                     .calls = calls_of(o, m)};
      const auto times = times_of(w, m, options, settings.transport.spin, o);
      if (times) {
        cell.round_trip = figures_of(*times);
        cell.copy_gb_s = copy_gb_s(m.bytes());
      } else if (times.error().why == reason::carrier_unavailable) {
        cell.skipped = times.error().text;
        skipped = fmt::format(" {}: {}.", w.name, cell.skipped);
      } else {
        return tl::unexpected(times.error());
      }
      cells.push_back(std::move(cell));
    }
  }
  bench_report report{
      .document = bench_document("wire"),
      .tables = {wire_table(cells)},
      .below = fmt::format("Two polling threads, a header of 128 bytes and the payload there and "
                           "back, H {}; {}. {}.{}",
                           o.hidden_size, ways, load_sentence(load), skipped),
      .figures = wire_figures(cells)};
  ordered_json& j = report.document;
  j["load_average"] = load;
  j["problem"] = {{"hidden_size", o.hidden_size}, {"warmup", o.warmup}, {"repeat", o.calls}};
  j["cells"] = ordered_json::array();
  for (const wire_cell& cell : cells) j["cells"].push_back(wire_json(cell));
  return print_report(std::move(report), line.json, o.markdown, o.demands, k_wire_figures);
}

}  // namespace moetier::cli
