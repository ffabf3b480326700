#pragma once
// What `bench kernels` says of one core's products and whole experts, as values: lines of a table,
// of README's table, and rows of the document all come from here. Thread: any (values).

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "actors/cli/bench_core.hpp"

namespace moetier::cli {

// Weights as a place in memory: out [rows, outputs] = in [rows, depth] W^T.
struct product_size {
  std::uint32_t outputs = 0;  // N
  std::uint32_t depth = 0;    // K

  bool operator==(const product_size&) const = default;
};
// "2048x768", N x K.
std::string name_of(const product_size& size);

// What the project wants of one row of figures; 0 where nothing is said.
struct cpu_aim {
  double cold = 0;       // median, of min(fma rate, rate of reading the weights)
  double warm = 0;       // best, of the fma rate
  double peer_cold = 0;  // how many times the peer's speed
  double two = 0;        // speed of two threads over one
};
cpu_aim aim_of_product(const product_size& size, std::uint32_t rows);
cpu_aim aim_of_expert(std::uint32_t rows);

struct cpu_oracle {
  double norm = 0;        // of the error, over that of the result
  double worst = 0;       // error of an element over the sum of its products' sizes
  bool same_bits = true;  // as the same rows among more rows

  bool pass() const noexcept;
};

struct peer_figures {
  std::string form{};  // the faster one; empty = no figures
  spread_of cold_us{};
  spread_of warm_us{};
  double norm = 0;
};

struct cpu_figures {
  std::string what;   // "product", "expert"
  product_size size;  // of an expert: H and I
  std::uint32_t rows = 0;
  double flops = 0;
  double weight_bytes = 0;
  spread_of cold_us{}, cold_of{};  // of_ceiling
  spread_of warm_us{}, warm_of{};  // of the fma rate
  spread_of fma_gflops{}, read_gb_s_1{}, read_gb_s_4{};
  peer_figures peer{};
  double two_threads = 0;  // speed over that of one, cold; 0 = not measured
  double two_fma = 0;      // the same of two bare fma loops
  cpu_oracle oracle{};
  cpu_aim aim{};

  double cold_gflops() const noexcept { return flops / cold_us.median / 1e3; }
  double warm_gflops() const noexcept { return flops / warm_us.min / 1e3; }
  double over_peer_cold() const noexcept;
  double over_peer_warm() const noexcept;
};

struct cpu_table_look {
  bool markdown = false;
};
// Head, then one line per row of figures; a result that fails its oracle shows no figure.
std::string cpu_table_text(const std::vector<cpu_figures>& all, const std::string& peer_name,
                           const cpu_table_look& look);
nlohmann::ordered_json cpu_json(const cpu_figures& f, const std::string& peer_name, bool quiet);

}  // namespace moetier::cli
