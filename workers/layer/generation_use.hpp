#pragma once
// Who still reads which generation: the expert load balancer's hooks, counting open visits per
// generation. Pages of a generation may be freed when nothing here holds it. At most two
// generations live at a time. Thread: engine.

#include <array>
#include <cstdint>

#include "workers/layer/layer_hooks.hpp"

namespace moetier::workers {

class generation_use final : public LayerHooks {
 public:
  void layer_enter(const layer_visit& visit) override;
  void layer_ready(const layer_visit& visit) override;
  void weights_done(const layer_visit& visit) override;
  void layer_exit(const layer_visit& visit) override;

  // Open visits of generations older than `than`.
  std::uint64_t held_before(generation_number than) const noexcept;

 private:
  struct use {
    generation_number generation;
    std::uint64_t entered = 0;  // layer_enter without layer_exit
    std::uint64_t reading = 0;  // layer_ready without weights_done
  };
  use& of(generation_number generation);

  std::array<use, 2> uses_{};
};

}  // namespace moetier::workers
