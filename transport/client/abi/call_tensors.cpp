#include "transport/client/abi/call_tensors.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include <fmt/format.h>

namespace moetier::abi {
namespace {

constexpr std::string_view k_row_types = "f32, f16 or bf16";
constexpr std::string_view k_index_types = "i32 or i64";

bool overlap(const tensor_view& a, const tensor_view& b) noexcept {
  return a.rows > 0 && b.rows > 0 && a.data < b.end() && b.data < a.end();
}

// Of a result's parts: what one of them gets would overwrite the other.
expected<void> check_apart(const char* name, const tensor_view& a, const char* other,
                           const tensor_view& b) {
  if (!overlap(a, b)) return {};
  return fail(reason::invalid_argument, name, fmt::format("partly in {}", other),
              "memory apart from it");
}

// Element j of a row of i32 or i64.
std::int64_t integer_at(const std::byte* row, dtype type, std::size_t j) noexcept {
  if (type == dtype::i32) {
    std::int32_t value = 0;
    std::memcpy(&value, row + j * sizeof value, sizeof value);
    return value;
  }
  std::int64_t value = 0;
  std::memcpy(&value, row + j * sizeof value, sizeof value);
  return value;
}

// A [tokens] tensor of integers, narrowed; what does not fit 32 bits becomes -2, which is no legal
// value anywhere and is refused by its own check.
expected<void> read_integers(const char* name, const DLTensor* tensor, std::uint32_t tokens,
                             std::vector<std::int32_t>& into) {
  const auto view = vector_of(name, tensor, tokens, k_index_types);
  if (!view) return unexpected_error(view.error());
  if (view->type != dtype::i32 && view->type != dtype::i64) {
    return fail(reason::invalid_dtype, name, dtype_name(view->type), "i32 or i64");
  }
  into.resize(tokens);
  for (std::uint32_t t = 0; t < tokens; ++t) {
    const std::int64_t value = integer_at(view->data + t * view->pitch, view->type, 0);
    const bool fits = value >= -1 && value <= std::numeric_limits<std::int32_t>::max();
    into[t] = fits ? static_cast<std::int32_t>(value) : -2;
  }
  return {};
}

}  // namespace

call_tensors::call_tensors(const tensor_sizes& sizes) : sizes_(sizes) {
  const std::size_t picks = std::size_t{sizes.tokens_max} * sizes.top_k;
  ids_.resize(picks);
  weights_.resize(picks);
  token_ids_.reserve(sizes.tokens_max);
  adapter_ids_.reserve(sizes.tokens_max);
}

expected<void> call_tensors::read_ids(const DLTensor* tensor, std::uint32_t tokens) {
  const std::uint32_t k = sizes_.top_k;
  const auto view = view_of("ids", tensor, tokens, k, k_index_types);
  if (!view) return unexpected_error(view.error());
  if (view->type != dtype::i32 && view->type != dtype::i64) {
    return fail(reason::invalid_dtype, "ids", dtype_name(view->type), "i32 or i64");
  }
  for (std::uint32_t t = 0; t < tokens; ++t) {
    const std::byte* row = view->data + t * view->pitch;
    std::int32_t* out = ids_.data() + std::size_t{t} * k;
    for (std::uint32_t j = 0; j < k; ++j) {
      const std::int64_t id = integer_at(row, view->type, j);
      if (view->type == dtype::i64 && (id < -1 || id >= std::int64_t{sizes_.columns}))
        return fail(reason::invalid_expert, t, j, id, sizes_.columns - 1);
      out[j] = static_cast<std::int32_t>(id);
    }
  }
  return {};
}

expected<void> call_tensors::read_weights(const DLTensor* tensor, std::uint32_t tokens) {
  const std::uint32_t k = sizes_.top_k;
  const auto view = view_of("weights", tensor, tokens, k, "f32");
  if (!view) return unexpected_error(view.error());
  if (view->type != dtype::f32) {
    return fail(reason::invalid_dtype, "weights", dtype_name(view->type), "f32");
  }
  for (std::uint32_t t = 0; t < tokens; ++t) {
    std::memcpy(weights_.data() + std::size_t{t} * k, view->data + t * view->pitch,
                k * sizeof(float));
  }
  return {};
}

expected<client::layer_call> call_tensors::read(const moetier_call& call, tensor_view& hidden) {
  const auto rows = view_of("hidden", call.hidden, sizes_.hidden_size, k_row_types);
  if (!rows) return unexpected_error(rows.error());
  hidden = *rows;
  if (hidden.rows > sizes_.tokens_max) {
    return fail(reason::capacity, hidden.rows, sizes_.tokens_max);
  }
  client::layer_call read{.layer = layer_id(call.layer),
                          .micro_batch = call.micro_batch,
                          .repeat_idx = call.repeat_idx,
                          .repeat_count = std::max<std::uint16_t>(1, call.repeat_count),
                          .tokens = hidden.rows,
                          .hidden = hidden.data,
                          .hidden_type = hidden.type,
                          .hidden_pitch = hidden.pitch};
  if (call.logits != nullptr) {
    const auto logits = view_of("logits", call.logits, hidden.rows, sizes_.columns, k_row_types);
    if (!logits) return unexpected_error(logits.error());
    read.logits = logits->data;
    read.logits_type = logits->type;
    read.logits_pitch = logits->pitch;
  }
  const std::size_t picks = std::size_t{hidden.rows} * sizes_.top_k;
  if (call.ids != nullptr) {
    if (auto ok = read_ids(call.ids, hidden.rows); !ok) return unexpected_error(ok.error());
    read.ids = std::span<const std::int32_t>(ids_.data(), picks);
  }
  if (call.weights != nullptr) {
    if (auto ok = read_weights(call.weights, hidden.rows); !ok) return unexpected_error(ok.error());
    read.weights = std::span<const float>(weights_.data(), picks);
  }
  if (call.token_ids != nullptr) {
    if (auto ok = read_integers("token_ids", call.token_ids, hidden.rows, token_ids_); !ok)
      return unexpected_error(ok.error());
    read.token_ids = token_ids_;
  }
  if (call.adapter_ids != nullptr) {
    if (auto ok = read_integers("adapter_ids", call.adapter_ids, hidden.rows, adapter_ids_); !ok)
      return unexpected_error(ok.error());
    read.adapter_ids = adapter_ids_;
  }
  return read;
}

expected<tensor_view> call_tensors::read_picks(const char* name, const DLTensor* tensor, dtype type,
                                               std::uint32_t tokens) const {
  auto view = view_of(name, tensor, tokens, sizes_.top_k, dtype_name(type));
  if (!view) return view;
  if (view->type != type)
    return fail(reason::invalid_dtype, name, dtype_name(view->type), dtype_name(type));
  const std::size_t element = dtype_bytes(type);
  if (view->rows > 1 && view->pitch != sizes_.top_k * element) {
    return fail(reason::invalid_argument, fmt::format("the row stride of {}", name),
                view->pitch / element, fmt::format("{}", sizes_.top_k));
  }
  return view;
}

expected<client::layer_result> call_tensors::read(const moetier_result& result,
                                                  std::uint32_t tokens,
                                                  const tensor_view& hidden) const {
  const auto output = view_of("output", result.output, tokens, sizes_.hidden_size, k_row_types);
  if (!output) return unexpected_error(output.error());
  const bool is_hidden =
      output->data == hidden.data && output->pitch == hidden.pitch && output->type == hidden.type;
  if (!is_hidden && overlap(*output, hidden)) {
    return fail(reason::invalid_argument, "output", "partly in hidden",
                "hidden itself or memory apart from it");
  }
  client::layer_result read{.output = output->data, .type = output->type, .pitch = output->pitch};
  const std::size_t picks = std::size_t{tokens} * sizes_.top_k;
  struct part {
    const char* name;
    tensor_view view;
  };
  std::array<part, 4> parts{part{"output", *output}};
  std::size_t known = 1;
  const auto add = [&](const char* name, const tensor_view& view) -> expected<void> {
    for (const part& p : std::span(parts).first(known)) {
      if (auto ok = check_apart(name, view, p.name, p.view); !ok) return ok;
    }
    parts[known++] = {name, view};
    return {};
  };
  if (result.ids != nullptr) {
    const auto ids = read_picks("ids", result.ids, dtype::i32, tokens);
    if (!ids) return unexpected_error(ids.error());
    if (auto ok = add("ids", *ids); !ok) return unexpected_error(ok.error());
    read.ids = std::span(reinterpret_cast<std::int32_t*>(ids->data), picks);
  }
  if (result.weights != nullptr) {
    const auto weights = read_picks("weights", result.weights, dtype::f32, tokens);
    if (!weights) return unexpected_error(weights.error());
    if (auto ok = add("weights", *weights); !ok) return unexpected_error(ok.error());
    read.weights = std::span(reinterpret_cast<float*>(weights->data), picks);
  }
  if (result.bad_rows != nullptr) {
    const auto bad = vector_of("bad_rows", result.bad_rows, tokens, "u8");
    if (!bad) return unexpected_error(bad.error());
    if (bad->type != dtype::u8)
      return fail(reason::invalid_dtype, "bad_rows", dtype_name(bad->type), "u8");
    if (bad->rows > 1 && bad->pitch != 1)
      return fail(reason::invalid_argument, "the stride of bad_rows", bad->pitch, "1");
    if (auto ok = add("bad_rows", *bad); !ok) return unexpected_error(ok.error());
    read.bad_rows = std::span(reinterpret_cast<std::uint8_t*>(bad->data), tokens);
  }
  return read;
}

}  // namespace moetier::abi
