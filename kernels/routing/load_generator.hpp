#pragma once
// Synthetic router logits for sessions that measure: perfectly balanced, or skewed by a Zipf law.
// Ids and weights come from the model's own method, so everything behind the router runs as it
// would. The same arguments give the same logits on every machine. Thread: any (immutable values).

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/routing/route.hpp"

namespace moetier::kernels {

// Which rows of a run: tokens count from first_token within a source's step.
struct load_rows {
  std::uint32_t step = 0;
  std::uint32_t source = 0;
  std::uint32_t first_token = 0;
  std::uint32_t tokens = 0;
};

// The experts 0..E-1 in the order that visits workers round robin, each worker's own experts of the
// even partition in turn: (8, 4) gives 0 2 4 6 1 3 5 7. Requires: 1 <= workers.
std::vector<std::uint16_t> visiting_order(std::uint32_t experts, std::uint32_t workers);

// Logits +10 for k experts of each row and -10 elsewhere, so that all experts get the same number
// of tokens where E divides tokens * k. With groups the rows walk over the groups instead. The
// caller routes with a layer that has no bias.
class balanced_load final {
 public:
  // Requires: check_routing(params) holds; workers >= 1.
  balanced_load(const routing_params& params, std::uint32_t workers);
  // logits [rows.tokens, columns]. Never allocates.
  void fill(const load_rows& rows, std::span<float> logits) const noexcept;
  // The expert at position j of token t of a source.
  std::uint32_t target(std::uint32_t source, std::uint32_t t, std::uint32_t j) const noexcept;

 private:
  routing_params params_;
  std::vector<std::uint16_t> order_;  // empty where groups are dropped
};

// logit = -alpha ln(1 + rank of the column) + Gumbel noise; ranks are a permutation of the columns
// by the seed, the noise is Philox4x32-10 at (step, source, token, column); computed in f64.
class zipf_load final {
 public:
  // Requires: alpha finite and >= 0.
  zipf_load(std::uint32_t columns, double alpha, std::uint64_t seed);
  // logits [rows.tokens, columns]. Never allocates.
  void fill(const load_rows& rows, std::span<float> logits) const noexcept;

 private:
  std::uint64_t seed_;
  std::vector<double> means_;  // by column
};

}  // namespace moetier::kernels
