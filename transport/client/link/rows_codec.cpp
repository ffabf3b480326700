#include "transport/client/link/rows_codec.hpp"

#include <cstring>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "transport/client/link/limits.hpp"

namespace moetier::client {
namespace {

constexpr std::string_view k_row_dtypes = "f32, f16, bf16";

expected<dtype> row_dtype(std::string_view name, std::uint8_t number) {
  const auto type = static_cast<dtype>(number);
  if (type == dtype::f32 || type == dtype::f16 || type == dtype::bf16) return type;
  const bool known = number <= static_cast<std::uint8_t>(dtype::u32);
  return fail(reason::invalid_dtype, name,
              known ? std::string(dtype_name(type)) : fmt::format("number {}", number),
              k_row_dtypes);
}

// [tokens, width] of `type` in `given` bytes; 32 bits times 32 bits times 4 fits 64 bits only below
// the limits, which the caller has checked.
expected<void> check_bytes(std::string_view name, std::uint64_t given, std::uint64_t tokens,
                           std::uint64_t width, dtype type) {
  const std::uint64_t due = tokens * width * dtype_bytes(type);
  if (given == due) return {};
  return fail(reason::invalid_shape, name, fmt::format("{} bytes", given),
              fmt::format("{} x {} x {} = {} bytes", tokens, width, dtype_name(type), due));
}

expected<void> check_count(std::string_view name, std::uint64_t given, std::uint64_t tokens,
                           std::uint64_t top_k) {
  if (given == tokens * top_k) return {};
  return fail(reason::invalid_shape, name, fmt::format("{} entries", given),
              fmt::format("{} x {} = {} entries", tokens, top_k, tokens * top_k));
}

template <class To, class List>
std::vector<To> copied(List list) {
  std::vector<To> out;
  out.reserve(list.size());
  for (const To value : list) out.push_back(value);
  return out;
}

std::vector<std::byte> copied_bytes(capnp::Data::Reader data) {
  const auto bytes = std::as_bytes(std::span(data.begin(), data.size()));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

capnp::Data::Reader data_of(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()};
}

void write_wish(rpc::Tier::Wish::Builder to, const session_wish& wish) {
  to.setTenant(kj::StringPtr(wish.tenant.c_str(), wish.tenant.size()));
  to.setIncarnation(wish.incarnation.value);
  to.setTokensMax(wish.tokens_max);
  to.setMicroBatches(wish.micro_batches);
  to.setTopK(wish.top_k);
  to.setReturnMode(wish.return_mode);
  to.setThin(wish.thin);
  to.setModelFingerprint(wish.model_fingerprint);
}

void write_shape(rpc::Session::Shape::Builder to, const transport::source_shape& shape) {
  to.setRowsMax(shape.rows_max);
  to.setHiddenStride(shape.hidden_stride);
  to.setTopK(shape.top_k);
  to.setReturnStride(shape.return_stride);
  to.setReturnRowsMax(shape.return_rows_max);
  to.setBanks(shape.banks);
}

transport::source_shape read_shape(rpc::Session::Shape::Reader from) noexcept {
  return {.rows_max = from.getRowsMax(),
          .hidden_stride = from.getHiddenStride(),
          .top_k = from.getTopK(),
          .return_stride = from.getReturnStride(),
          .return_rows_max = from.getReturnRowsMax(),
          .banks = from.getBanks()};
}

expected<void> check_forward_size(const thin_call& call) {
  const std::size_t bytes = call.hidden.size() + call.logits.size() + call.ids.size_bytes() +
                            call.weights.size_bytes() + k_message_overhead_bytes;
  if (bytes <= k_rpc_message_bytes_max) return {};
  return fail(reason::limit_exceeded, "bytes of one forward", bytes, k_rpc_message_bytes_max);
}

capnp::MessageSize rows_size_hint(const thin_call& call) noexcept {
  const std::size_t bytes =
      call.hidden.size() + call.logits.size() + call.ids.size_bytes() + call.weights.size_bytes();
  return {bytes / sizeof(capnp::word) + 64, 0};
}

void write_rows(rpc::Session::Rows::Builder to, const thin_call& call) {
  to.setLayer(call.layer.value);
  to.setTokens(call.tokens);
  to.setHiddenDtype(static_cast<std::uint8_t>(call.hidden_type));
  to.setHidden(data_of(call.hidden));
  to.setLogitsDtype(static_cast<std::uint8_t>(call.logits_type));
  to.setLogits(data_of(call.logits));
  to.setIds(kj::arrayPtr(call.ids.data(), call.ids.size()));
  to.setWeights(kj::arrayPtr(call.weights.data(), call.weights.size()));
}

expected<thin_rows> read_rows(rpc::Session::Rows::Reader from, const thin_limits& limits) {
  thin_rows rows;
  rows.layer = layer_id(from.getLayer());
  rows.tokens = from.getTokens();
  if (rows.tokens > limits.tokens_max) {
    return fail(reason::capacity, rows.tokens, limits.tokens_max);
  }
  const auto hidden_type = row_dtype("hidden", from.getHiddenDtype());
  if (!hidden_type) return unexpected_error(hidden_type.error());
  rows.hidden_type = *hidden_type;

  const std::uint64_t tokens = rows.tokens;
  const std::uint64_t answer_bytes =
      tokens * limits.hidden_size * sizeof(float) +
      tokens * limits.top_k * (sizeof(std::int32_t) + sizeof(float)) + k_message_overhead_bytes;
  if (answer_bytes > k_rpc_message_bytes_max) {
    return fail(reason::limit_exceeded, "bytes of the answer", answer_bytes,
                k_rpc_message_bytes_max);
  }
  const auto hidden = from.getHidden();
  if (auto ok = check_bytes("hidden", hidden.size(), tokens, limits.hidden_size, *hidden_type); !ok)
    return unexpected_error(ok.error());

  const auto logits = from.getLogits();
  const auto ids = from.getIds();
  const auto weights = from.getWeights();
  const bool routed = ids.size() > 0 || weights.size() > 0;
  if (routed && logits.size() > 0) {
    return fail(reason::invalid_argument, "the router input", "both logits and ids",
                "logits, or ids with weights");
  }
  if (routed) {
    if (auto ok = check_count("ids", ids.size(), tokens, limits.top_k); !ok)
      return unexpected_error(ok.error());
    if (auto ok = check_count("weights", weights.size(), tokens, limits.top_k); !ok)
      return unexpected_error(ok.error());
  } else {
    const auto logits_type = row_dtype("logits", from.getLogitsDtype());
    if (!logits_type) return unexpected_error(logits_type.error());
    rows.logits_type = *logits_type;
    if (auto ok = check_bytes("logits", logits.size(), tokens, limits.experts, *logits_type); !ok)
      return unexpected_error(ok.error());
  }
  rows.hidden = copied_bytes(hidden);
  rows.logits = copied_bytes(logits);
  rows.ids = copied<std::int32_t>(ids);
  rows.weights = copied<float>(weights);
  return rows;
}

void write_sums(rpc::Session::Sums::Builder to, const thin_result& result) {
  to.setOutput(data_of(std::as_bytes(std::span(result.output))));
  to.setIds(kj::arrayPtr(result.ids.data(), result.ids.size()));
  to.setWeights(kj::arrayPtr(result.weights.data(), result.weights.size()));
  to.setGeneration(result.generation.value);
  to.setEpoch(result.epoch.value);
}

expected<thin_result> read_sums(rpc::Session::Sums::Reader from, std::uint32_t tokens) {
  const auto output = from.getOutput();
  const auto ids = from.getIds();
  const auto weights = from.getWeights();
  const std::uint64_t row = tokens == 0 ? 0 : output.size() / tokens;
  const bool sound =
      row * tokens == output.size() && row % sizeof(float) == 0 && ids.size() == weights.size();
  if (!sound) return fail(reason::frame_malformed, "sums do not fit their rows");
  thin_result result;
  result.output.resize(output.size() / sizeof(float));
  if (!result.output.empty()) std::memcpy(result.output.data(), output.begin(), output.size());
  result.ids = copied<std::int32_t>(ids);
  result.weights = copied<float>(weights);
  result.generation = generation_number(from.getGeneration());
  result.epoch = epoch_number(from.getEpoch());
  return result;
}

}  // namespace moetier::client
