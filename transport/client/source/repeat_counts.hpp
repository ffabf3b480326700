#pragma once
// How often each layer ran in a step, per micro-batch, and how often it is to run: the number that
// a layer's first call names holds for the session. Calls run in order of repeat_idx.
// Errors: sequence. Thread: owner.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "schemas/base/limits.hpp"
#include "transport/client/source/source_session.hpp"

namespace moetier::client {

class repeat_counts {
 public:
  explicit repeat_counts(std::size_t layers) : layers_(layers) {}

  // `layer`: the index of call.layer in the model.
  expected<void> check(const layer_call& call, std::size_t layer) const;
  void count(const layer_call& call, std::size_t layer) noexcept;
  void begin_step() noexcept;

 private:
  struct of_layer {
    std::uint16_t done[k_micro_batches_max] = {};
    std::uint16_t count = 0;  // 0 = not known before its first call
  };
  std::vector<of_layer> layers_;
};

}  // namespace moetier::client
