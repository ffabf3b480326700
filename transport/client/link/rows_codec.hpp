#pragma once
// The tensors and shapes of the client RPC as values and back: rows and sums of a thin call,
// wishes, source shapes. Sizes are checked in 64 bits before anything is allocated. Thread: any.

#include <span>

#include "schemas/tier.capnp.h"
#include "transport/client/link/tier_link.hpp"

namespace moetier::client {

// The rows of a forward as the server keeps them: copied out of the message once.
struct thin_rows {
  layer_id layer;
  std::uint32_t tokens = 0;
  dtype hidden_type = dtype::f32;
  dtype logits_type = dtype::f32;
  std::vector<std::byte> hidden;
  std::vector<std::byte> logits;
  std::vector<std::int32_t> ids;
  std::vector<float> weights;
  std::vector<std::int32_t> token_ids;
  std::vector<std::int32_t> adapter_ids;
};

// What a call's rows and its answer take while a server holds them.
std::uint64_t bytes_held(const thin_rows& rows, std::uint32_t top_k) noexcept;

// What rows are measured against.
struct thin_limits {
  std::uint32_t tokens_max = 0;
  std::uint32_t hidden_size = 0;
  std::uint32_t columns = 0;  // of logits
  std::uint32_t top_k = 0;
  bool gate_on_tier = false;  // rows may come without logits and ids
};

capnp::Data::Reader data_of(std::span<const std::byte> bytes) noexcept;

void write_wish(rpc::Tier::Wish::Builder to, const session_wish& wish);
void write_shape(rpc::Session::Shape::Builder to, const transport::source_shape& shape);
transport::source_shape read_shape(rpc::Session::Shape::Reader from) noexcept;
void write_suspicion(rpc::Session::Suspicion::Builder to, const transport::suspicion& suspicion);
expected<transport::suspicion> read_suspicion(rpc::Session::Suspicion::Reader from);

// reason::limit_exceeded when the message would exceed the protocol's bound.
expected<void> check_forward_size(const thin_call& call);
capnp::MessageSize rows_size_hint(const thin_call& call) noexcept;
void write_rows(rpc::Session::Rows::Builder to, const thin_call& call);
// Everything about the rows that sizes can tell; ids, weights and logits themselves are judged by
// the source half. Refuses too rows whose answer would exceed a message.
expected<thin_rows> read_rows(rpc::Session::Rows::Reader from, const thin_limits& limits);

// A run of a router's rows that fits a message, from `first_row` on. Requires: first_row < columns.
void write_router_rows(rpc::Tier::RouterRows::Builder to, const layer_router& router,
                       std::uint32_t first_row);
expected<layer_router> read_router_rows(rpc::Tier::RouterRows::Reader from);
// Appends a piece that begins at row `next` and moves `next` on.
expected<void> join(layer_router& whole, layer_router piece, std::uint32_t& next);

void write_sums(rpc::Session::Sums::Builder to, const thin_result& result);
expected<thin_result> read_sums(rpc::Session::Sums::Reader from, std::uint32_t tokens);

}  // namespace moetier::client
