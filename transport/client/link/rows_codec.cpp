#include "schemas/base/limits.hpp"
#include "transport/client/link/rows_codec.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "transport/client/link/limits.hpp"

namespace moetier::client {
namespace {

constexpr std::size_t k_piece_bytes = 4u << 20;  // of a router, in one message
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

// Integers, one a token, or none.
expected<void> check_per_token(std::string_view name, std::uint64_t given, std::uint64_t tokens) {
  if (given == 0) return {};
  return check_count(name, given, tokens, 1);
}

std::size_t row_bytes(const thin_call& call) noexcept {
  return call.hidden.size() + call.logits.size() + call.ids.size_bytes() +
         call.weights.size_bytes() + call.token_ids.size_bytes() + call.adapter_ids.size_bytes();
}

}  // namespace

std::uint64_t bytes_held(const thin_rows& rows, std::uint32_t top_k) noexcept {
  const std::uint64_t integers = rows.ids.size() + rows.weights.size() + rows.token_ids.size() +
                                 rows.adapter_ids.size();
  const std::uint64_t sums = rows.hidden.size() / dtype_bytes(rows.hidden_type);  // f32 each
  const std::uint64_t choices = 2ULL * rows.tokens * top_k;
  return rows.hidden.size() + rows.logits.size() + 4 * (integers + sums + choices);
}

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
  to.setGate(wish.gate_on_tier ? 1 : 0);
  to.setSharedExperts(wish.shared_experts ? 1 : 0);
  to.setBadRows(wish.flags_bad_rows ? 1 : 0);
  to.setDeadlineClass(wish.urgency ? static_cast<std::uint8_t>(*wish.urgency) + 1 : 0);
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

void write_suspicion(rpc::Session::Suspicion::Builder to, const transport::suspicion& suspicion) {
  to.setNumber(suspicion.number);
  auto workers = to.initWorkers(static_cast<unsigned>(suspicion.workers.size()));
  for (unsigned i = 0; i < workers.size(); ++i) {
    workers[i].setWorker(suspicion.workers[i].worker.value);
    workers[i].setIncarnation(suspicion.workers[i].incarnation.value);
  }
}

expected<transport::suspicion> read_suspicion(rpc::Session::Suspicion::Reader from) {
  const auto workers = from.getWorkers();
  if (workers.size() > k_workers_max) {
    return fail(reason::limit_exceeded, "suspected workers", workers.size(), k_workers_max);
  }
  transport::suspicion suspicion;
  suspicion.number = from.getNumber();
  for (const auto w : workers) {
    suspicion.workers.push_back({worker_id(w.getWorker()), incarnation_id(w.getIncarnation())});
  }
  return suspicion;
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
  const std::size_t bytes = row_bytes(call) + k_message_overhead_bytes;
  if (bytes <= k_rpc_message_bytes_max) return {};
  return fail(reason::limit_exceeded, "bytes of one forward", bytes, k_rpc_message_bytes_max);
}

capnp::MessageSize rows_size_hint(const thin_call& call) noexcept {
  return {row_bytes(call) / sizeof(capnp::word) + 64, 0};
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
  to.setTokenIds(kj::arrayPtr(call.token_ids.data(), call.token_ids.size()));
  to.setAdapterIds(kj::arrayPtr(call.adapter_ids.data(), call.adapter_ids.size()));
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
  } else if (!limits.gate_on_tier || logits.size() > 0) {
    const auto logits_type = row_dtype("logits", from.getLogitsDtype());
    if (!logits_type) return unexpected_error(logits_type.error());
    rows.logits_type = *logits_type;
    if (auto ok = check_bytes("logits", logits.size(), tokens, limits.columns, *logits_type); !ok)
      return unexpected_error(ok.error());
  }
  rows.hidden = copied_bytes(hidden);
  rows.logits = copied_bytes(logits);
  rows.ids = copied<std::int32_t>(ids);
  rows.weights = copied<float>(weights);
  const auto token_ids = from.getTokenIds();
  const auto adapter_ids = from.getAdapterIds();
  if (auto ok = check_per_token("token_ids", token_ids.size(), tokens); !ok)
    return unexpected_error(ok.error());
  if (auto ok = check_per_token("adapter_ids", adapter_ids.size(), tokens); !ok)
    return unexpected_error(ok.error());
  rows.token_ids = copied<std::int32_t>(token_ids);
  rows.adapter_ids = copied<std::int32_t>(adapter_ids);
  return rows;
}

void write_router_rows(rpc::Tier::RouterRows::Builder to, const layer_router& router,
                       std::uint32_t first_row) {
  const std::size_t row = std::size_t{router.width} * dtype_bytes(router.type);
  const std::size_t rows = std::min<std::size_t>(router.columns - first_row,
                                                 std::max<std::size_t>(1, k_piece_bytes / row));
  to.setColumns(router.columns);
  to.setWidth(router.width);
  to.setDtype(static_cast<std::uint8_t>(router.type));
  to.setRows(data_of(std::span(router.matrix).subspan(first_row * row, rows * row)));
  if (first_row == 0) to.setBias(kj::arrayPtr(router.bias.data(), router.bias.size()));
}

expected<layer_router> read_router_rows(rpc::Tier::RouterRows::Reader from) {
  layer_router piece;
  const auto type = row_dtype("router", from.getDtype());
  if (!type) return unexpected_error(type.error());
  piece.type = *type;
  piece.columns = from.getColumns();
  piece.width = from.getWidth();
  const std::size_t row = std::size_t{piece.width} * dtype_bytes(piece.type);
  const auto rows = from.getRows();
  const auto bias = from.getBias();
  const bool sound = piece.columns >= 1 && piece.columns <= 2 * k_experts_max && row > 0 &&
                     piece.width <= k_hidden_max && rows.size() >= row && rows.size() % row == 0 &&
                     (bias.size() == 0 || bias.size() == piece.columns);
  if (!sound) return fail(reason::frame_malformed, "a router's rows do not fit it");
  piece.matrix = copied_bytes(rows);
  piece.bias = copied<float>(bias);
  return piece;
}

expected<void> join(layer_router& whole, layer_router piece, std::uint32_t& next) {
  if (next == 0) {
    whole = std::move(piece);
  } else {
    if (piece.columns != whole.columns || piece.width != whole.width || piece.type != whole.type)
      return fail(reason::frame_malformed, "pieces of a router differ");
    whole.matrix.insert(whole.matrix.end(), piece.matrix.begin(), piece.matrix.end());
  }
  const std::size_t rows =
      whole.matrix.size() / (std::size_t{whole.width} * dtype_bytes(whole.type));
  if (rows > whole.columns) return fail(reason::frame_malformed, "a router has too many rows");
  next = static_cast<std::uint32_t>(rows);
  return {};
}

void write_sums(rpc::Session::Sums::Builder to, const thin_result& result) {
  to.setOutput(data_of(std::as_bytes(std::span(result.output))));
  to.setIds(kj::arrayPtr(result.ids.data(), result.ids.size()));
  to.setWeights(kj::arrayPtr(result.weights.data(), result.weights.size()));
  to.setGeneration(result.generation.value);
  to.setEpoch(result.epoch.value);
  to.setBadRows(data_of(std::as_bytes(std::span(result.bad_rows))));
}

expected<thin_result> read_sums(rpc::Session::Sums::Reader from, std::uint32_t tokens) {
  const auto output = from.getOutput();
  const auto ids = from.getIds();
  const auto weights = from.getWeights();
  const std::uint64_t row = tokens == 0 ? 0 : output.size() / tokens;
  const auto bad_rows = from.getBadRows();
  const bool sound = (bad_rows.size() == 0 || bad_rows.size() == tokens) &&
                     row * tokens == output.size() && row % sizeof(float) == 0 &&
                     ids.size() == weights.size();
  if (!sound) return fail(reason::frame_malformed, "sums do not fit their rows");
  thin_result result;
  result.output.resize(output.size() / sizeof(float));
  if (!result.output.empty()) std::memcpy(result.output.data(), output.begin(), output.size());
  result.ids = copied<std::int32_t>(ids);
  result.weights = copied<float>(weights);
  result.bad_rows.assign(bad_rows.begin(), bad_rows.end());
  result.generation = generation_number(from.getGeneration());
  result.epoch = epoch_number(from.getEpoch());
  return result;
}

}  // namespace moetier::client
