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
};

// What rows are measured against.
struct thin_limits {
  std::uint32_t tokens_max = 0;
  std::uint32_t hidden_size = 0;
  std::uint32_t experts = 0;
  std::uint32_t top_k = 0;
};

capnp::Data::Reader data_of(std::span<const std::byte> bytes) noexcept;

void write_wish(rpc::Tier::Wish::Builder to, const session_wish& wish);
void write_shape(rpc::Session::Shape::Builder to, const transport::source_shape& shape);
transport::source_shape read_shape(rpc::Session::Shape::Reader from) noexcept;

// reason::limit_exceeded when the message would exceed the protocol's bound.
expected<void> check_forward_size(const thin_call& call);
capnp::MessageSize rows_size_hint(const thin_call& call) noexcept;
void write_rows(rpc::Session::Rows::Builder to, const thin_call& call);
// Everything about the rows that sizes can tell; ids, weights and logits themselves are judged by
// the source half. Refuses too rows whose answer would exceed a message.
expected<thin_rows> read_rows(rpc::Session::Rows::Reader from, const thin_limits& limits);

void write_sums(rpc::Session::Sums::Builder to, const thin_result& result);
expected<thin_result> read_sums(rpc::Session::Sums::Reader from, std::uint32_t tokens);

}  // namespace moetier::client
