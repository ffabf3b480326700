#pragma once
// A closed loop of one caller on one session: a step of one call, again and again, each with other
// router logits. Thread: owner of the session.

#include <cstdint>
#include <vector>

#include "actors/cli/bench_load.hpp"
#include "actors/cli/call_split.hpp"
#include "schemas/base/error.hpp"
#include "transport/client/source/source_session.hpp"

namespace moetier::cli {

struct loop_wish {
  layer_id layer{};
  std::uint32_t tokens = 1;
  std::uint64_t seed = k_load_seed;
  load_wish load{};
  duration_ns deadline = 0;  // of a call; 0 = the session's
};

// The layer of the model that a bench's number names; 0 is the first MoE layer where layer 0 is
// none.
layer_id bench_layer(const model_description& model, std::uint32_t number);

class closed_loop final {
 public:
  // Requires: the session outlives it.
  closed_loop(client::source_session& source, const loop_wish& wish);
  expected<call_sample> call();

 private:
  client::source_session& source_;
  loop_wish wish_;
  std::uint32_t width_;
  std::uint32_t columns_;
  bench_load load_;
  std::vector<float> hidden_, logits_, output_;
};

}  // namespace moetier::cli
