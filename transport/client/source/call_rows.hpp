#pragma once
// The rows of one call: its inputs widened to f32, its routing, the replica of every pick, and by
// that how its rows lie in each worker's exchange and how returned rows add up. It holds no
// exchange and sends nothing: the ticket does. All buffers exist from the start.
//
// One row travels per (token, distinct worker), ascending tokens. Its record has k positions for
// the routed experts, then one per shared expert that the tier computes. Where the router weight
// multiplies the input, the routed row is already weighted, so the shared experts get a second row,
// right behind it. The row of a token in a worker's return follows from the picks alone, by
// counting. Identity experts never travel: their w·x is added here.
// Thread: owner.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "eplb/replica_choice.hpp"
#include "kernels/backend.hpp"
#include "schemas/base/error.hpp"
#include "transport/client/source/row_arithmetic.hpp"
#include "transport/client/source/source_session.hpp"
#include "transport/client/source/worker_table.hpp"
#include "transport/snapshot/routing_snapshot.hpp"
#include "transport/step/step_plan.hpp"

namespace moetier::client {

// What a session's calls look like; equal for all of its tickets.
struct call_shape {
  std::uint32_t tokens_max = 0;
  std::uint32_t hidden_size = 0;
  std::uint32_t experts = 0;
  std::uint32_t columns = 0;  // of the router's logits: experts and identity experts
  std::uint32_t top_k = 0;
  std::uint32_t shared = 0;  // shared experts on the tier
  weight_point weight_at = weight_point::output;
  kernels::return_mode mode = kernels::return_mode::partial;
  bool flags_bad_rows = false;
  bool gates = false;  // calls may leave the logits to the source half

  std::uint32_t positions() const noexcept { return top_k + shared; }
  bool has_second_rows() const noexcept { return shared > 0 && weight_at == weight_point::input; }
};

class call_rows final {
 public:
  call_rows(const call_shape& shape, const row_arithmetic& arithmetic);

  std::uint32_t tokens() const noexcept { return tokens_; }
  std::span<const std::int32_t> ids() const noexcept { return {ids_.data(), picks()}; }
  std::span<const float> weights() const noexcept { return {weights_.data(), picks()}; }
  std::span<const std::uint8_t> bad_rows() const noexcept { return {bad_.data(), tokens_}; }

  // Copies, widens and routes the inputs of a checked call. `router`: of the layer, where the tier
  // computes the logits.
  expected<void> take(const layer_call& call, const transport::routing_snapshot& snapshot,
                      std::size_t layer_index, const layer_router* router);

  // Picks replicas for the tokens of `part`, outside of `avoid` where there is one.
  // reason::no_replica when an expert has none at all.
  expected<void> choose(const transport::routing_snapshot& snapshot, const worker_table& workers,
                        const eplb::choice_key& key, std::size_t layer_index,
                        transport::split_part part, worker_mask avoid = 0);
  // Whether every row has a live replica outside of `avoid`.
  bool can_avoid(const transport::routing_snapshot& snapshot, const worker_table& workers,
                 std::size_t layer_index, worker_mask avoid) const noexcept;

  // Workers that get rows of `part`, and how many rows go there and come back.
  struct traffic {
    std::uint32_t rows = 0;
    std::uint32_t rows_due = 0;
  };
  worker_mask count(transport::split_part part, const worker_table& workers,
                    std::array<traffic, k_spans_max>& by_span) const noexcept;

  // Writes rows and records into the send regions. Requires: regions of count()'s sizes.
  void pack(transport::split_part part, const worker_table& workers,
            const std::array<traffic, k_spans_max>& by_span,
            const std::span<std::byte>* regions) const noexcept;

  // A walk through what the workers gave back for one part, token by token.
  struct returns {
    std::array<const std::byte*, k_spans_max> payload{};
    std::array<std::uint32_t, k_spans_max> next{};
  };
  // Sums token `t` into `out`, H f32, in the fixed order.
  void sum(std::uint32_t t, const worker_table& workers, returns& from, float* out) noexcept;

 private:
  std::size_t picks() const noexcept { return std::size_t{tokens_} * shape_.top_k; }
  const float* hidden(std::uint32_t t) const noexcept {
    return hidden_.data() + t * (stride_ / sizeof(float));
  }
  expected<void> route(const layer_call& call, const transport::routing_snapshot& snapshot,
                       std::size_t layer_index, const layer_router* router);
  void weigh_shared(const layer_routing& layer) noexcept;
  void steer(const transport::routing_snapshot& snapshot, const worker_table& workers,
             std::size_t layer_index, transport::split_part part, worker_mask avoid) noexcept;
  bool is_identity(std::size_t pick) const noexcept {
    return ids_[pick] >= static_cast<std::int32_t>(shape_.experts);
  }
  worker_mask routed_to(std::uint32_t t, std::size_t span) const noexcept {
    return to_[t] >> span & 1;
  }
  void write_record(std::uint32_t t, const worker_table& workers, std::size_t span, bool routed,
                    bool shared, std::byte* record) const noexcept;
  const float* next_row(returns& from, std::size_t span) const noexcept;
  void gather_partials(std::uint32_t t, returns& from) noexcept;
  void gather_exact(std::uint32_t t, const worker_table& workers, returns& from) noexcept;

  call_shape shape_;
  const row_arithmetic& arithmetic_;
  std::size_t stride_;  // bytes of a row, out and back

  std::uint32_t tokens_ = 0;
  std::vector<float> hidden_;             // [tokens_max, stride]
  std::vector<float> logits_;             // [tokens_max, columns] where the tier computes them
  std::vector<std::int32_t> ids_;         // [tokens_max, k]
  std::vector<float> weights_;            // [tokens_max, k]
  std::vector<std::uint8_t> bad_;         // [tokens_max]
  std::vector<std::int32_t> adapters_;    // [tokens_max], -1 none
  std::vector<float> shared_weights_;     // [tokens_max] if shared
  std::vector<std::int32_t> travelling_;  // [tokens_max, k]: ids but for identity experts
  std::vector<std::int32_t> dense_;       // [tokens_max, k]: picked replicas
  std::vector<worker_mask> to_;           // [tokens_max]: workers of the routed experts
  std::vector<std::uint8_t> shared_to_;   // [tokens_max]: span of the shared experts
  std::vector<std::uint32_t> counts_;     // scratch of the replica choice
  std::vector<row_term> terms_;           // scratch of a sum
};

}  // namespace moetier::client
