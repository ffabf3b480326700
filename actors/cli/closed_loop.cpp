#include "actors/cli/closed_loop.hpp"

#include <random>

namespace moetier::cli {

layer_id bench_layer(const model_description& model, std::uint32_t number) {
  const layer_id layer(static_cast<std::uint16_t>(number));
  return moe_index(model, layer) < 0 && number == 0 ? model.moe_layers.front() : layer;
}

closed_loop::closed_loop(client::source_session& source, const loop_wish& wish)
    : source_(source),
      wish_(wish),
      width_(source.snapshot().model.hidden_size),
      columns_(source.snapshot().model.columns()),
      load_(wish.load, source.snapshot().routing, columns_,
            static_cast<std::uint32_t>(source.snapshot().workers.size()), wish.seed),
      hidden_(std::size_t{wish.tokens} * width_),
      logits_(std::size_t{wish.tokens} * columns_),
      output_(hidden_.size()) {
  std::mt19937_64 random(wish.seed);
  std::normal_distribution<float> normal;
  for (float& x : hidden_) x = normal(random);
}

expected<call_sample> closed_loop::call() {
  load_.fill(wish_.tokens, logits_);
  if (auto begun = source_.step_begin(false); !begun) return tl::unexpected(begun.error());
  const time_ns began = monotonic_now();
  auto done = source_.submit({.layer = wish_.layer,
                              .tokens = wish_.tokens,
                              .hidden = hidden_.data(),
                              .hidden_type = dtype::f32,
                              .hidden_pitch = sizeof(float) * width_,
                              .logits = logits_.data(),
                              .logits_type = dtype::f32,
                              .logits_pitch = sizeof(float) * columns_,
                              .deadline = wish_.deadline});
  if (done) {
    done = source_.collect(
        0, {.output = output_.data(), .type = dtype::f32, .pitch = sizeof(float) * width_});
  }
  const duration_ns took = monotonic_now() - began;
  if (!done) return tl::unexpected(done.error());
  if (auto ended = source_.step_end(); !ended) return tl::unexpected(ended.error());
  return call_sample{.total = took, .parts = source_.last_times()};
}

}  // namespace moetier::cli
