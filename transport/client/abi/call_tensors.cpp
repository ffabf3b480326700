#include "transport/client/abi/call_tensors.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/core.h>

namespace moetier::abi {
namespace {

// Which element types a tensor may have.
struct element_types {
  std::string_view text;
  std::array<dtype, 3> types;
};
constexpr element_types k_row_types{"f32, f16 or bf16", {dtype::f32, dtype::f16, dtype::bf16}};
constexpr element_types k_index_types{"i32 or i64", {dtype::i32, dtype::i64, dtype::i64}};
constexpr element_types k_weight_types{"f32", {dtype::f32, dtype::f32, dtype::f32}};

expected<tensor_view> of_types(const char* name, const element_types& allowed,
                               expected<tensor_view> view) {
  if (!view || std::ranges::find(allowed.types, view->type) != allowed.types.end()) return view;
  return fail(reason::invalid_dtype, name, dtype_name(view->type), allowed.text);
}

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
void read_integers(const tensor_view& view, std::vector<std::int32_t>& into) {
  into.resize(view.rows);
  for (std::uint32_t t = 0; t < view.rows; ++t) {
    const std::int64_t value = integer_at(view.data + t * view.pitch, view.type, 0);
    const bool fits = value >= -1 && value <= std::numeric_limits<std::int32_t>::max();
    into[t] = fits ? static_cast<std::int32_t>(value) : -2;
  }
}

// What does not fit is said as it was given.
expected<void> check_adapter_ids(const tensor_view& view) {
  constexpr std::int64_t k_max = std::numeric_limits<std::int32_t>::max();
  for (std::uint32_t t = 0; t < view.rows; ++t) {
    const std::int64_t value = integer_at(view.data + t * view.pitch, view.type, 0);
    if (value >= -1 && value <= k_max) continue;
    return fail(reason::invalid_argument, fmt::format("adapter_ids of row {}", t), value,
                "-1 (none) or the id of a loaded adapter");
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

// --- calls --------------------------------------------------------------------------------------

expected<call_views> call_tensors::view(const moetier_call& call) const {
  call_views views;
  expected<void> ok;  // until the first tensor that does not fit
  const auto keep = [&](const char* name, const element_types& allowed, tensor_view& as,
                        expected<tensor_view> seen) {
    const auto view = of_types(name, allowed, std::move(seen));
    if (!view) {
      ok = unexpected_error(view.error());
      return;
    }
    as = *view;
    ok = views.place.join(name, as);
  };
  keep("hidden", k_row_types, views.hidden,
       view_of("hidden", call.hidden, sizes_.hidden_size, k_row_types.text));
  if (!ok) return unexpected_error(ok.error());
  const std::uint32_t tokens = views.hidden.rows;
  if (tokens > sizes_.tokens_max) return fail(reason::capacity, tokens, sizes_.tokens_max);

  const auto keep_rows = [&](const char* name, const DLTensor* tensor, std::uint32_t width,
                             const element_types& allowed, tensor_view& as) {
    if (!ok || tensor == nullptr) return;
    keep(name, allowed, as, view_of(name, tensor, tokens, width, allowed.text));
  };
  const auto keep_vector = [&](const char* name, const DLTensor* tensor, tensor_view& as) {
    if (!ok || tensor == nullptr) return;
    keep(name, k_index_types, as, vector_of(name, tensor, tokens, k_index_types.text));
  };
  keep_rows("logits", call.logits, sizes_.columns, k_row_types, views.logits);
  keep_rows("ids", call.ids, sizes_.top_k, k_index_types, views.ids);
  keep_rows("weights", call.weights, sizes_.top_k, k_weight_types, views.weights);
  keep_vector("token_ids", call.token_ids, views.token_ids);
  keep_vector("adapter_ids", call.adapter_ids, views.adapter_ids);
  if (!ok) return unexpected_error(ok.error());
  return views;
}

expected<void> call_tensors::read_ids(const tensor_view& view) {
  const std::uint32_t k = sizes_.top_k;
  for (std::uint32_t t = 0; t < view.rows; ++t) {
    const std::byte* row = view.data + t * view.pitch;
    std::int32_t* out = ids_.data() + std::size_t{t} * k;
    for (std::uint32_t j = 0; j < k; ++j) {
      const std::int64_t id = integer_at(row, view.type, j);
      if (view.type == dtype::i64 && (id < -1 || id >= std::int64_t{sizes_.columns}))
        return fail(reason::invalid_expert, t, j, id, sizes_.columns - 1);
      out[j] = static_cast<std::int32_t>(id);
    }
  }
  return {};
}

void call_tensors::read_weights(const tensor_view& view) {
  const std::uint32_t k = sizes_.top_k;
  for (std::uint32_t t = 0; t < view.rows; ++t) {
    std::memcpy(weights_.data() + std::size_t{t} * k, view.data + t * view.pitch,
                k * sizeof(float));
  }
}

expected<client::layer_call> call_tensors::read(const moetier_call& call, const call_views& views) {
  const tensor_view& hidden = views.hidden;
  client::layer_call read{.layer = layer_id(call.layer),
                          .micro_batch = call.micro_batch,
                          .repeat_idx = call.repeat_idx,
                          .repeat_count = std::max<std::uint16_t>(1, call.repeat_count),
                          .tokens = hidden.rows,
                          .hidden = hidden.data,
                          .hidden_type = hidden.type,
                          .hidden_pitch = hidden.pitch};
  if (views.logits.given()) {
    read.logits = views.logits.data;
    read.logits_type = views.logits.type;
    read.logits_pitch = views.logits.pitch;
  }
  const std::size_t picks = std::size_t{hidden.rows} * sizes_.top_k;
  if (views.ids.given()) {
    if (auto ok = read_ids(views.ids); !ok) return unexpected_error(ok.error());
    read.ids = std::span<const std::int32_t>(ids_.data(), picks);
  }
  if (views.weights.given()) {
    read_weights(views.weights);
    read.weights = std::span<const float>(weights_.data(), picks);
  }
  if (views.token_ids.given()) {
    read_integers(views.token_ids, token_ids_);
    read.token_ids = token_ids_;
  }
  if (views.adapter_ids.given()) {
    if (auto ok = check_adapter_ids(views.adapter_ids); !ok) return unexpected_error(ok.error());
    read_integers(views.adapter_ids, adapter_ids_);
    read.adapter_ids = adapter_ids_;
  }
  return read;
}

// --- results ------------------------------------------------------------------------------------

expected<tensor_view> call_tensors::view_picks(const char* name, const DLTensor* tensor, dtype type,
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

expected<result_views> call_tensors::view(const moetier_result& result, const tensor_view& hidden,
                                          const shared_place& called) const {
  const std::uint32_t tokens = hidden.rows;
  result_views views;
  views.place = called;
  const auto output =
      of_types("output", k_row_types,
               view_of("output", result.output, tokens, sizes_.hidden_size, k_row_types.text));
  if (!output) return unexpected_error(output.error());
  if (auto ok = views.place.join("output", *output); !ok) return unexpected_error(ok.error());
  views.output = *output;
  const bool is_hidden =
      output->data == hidden.data && output->pitch == hidden.pitch && output->type == hidden.type;
  if (!is_hidden && overlap(*output, hidden)) {
    return fail(reason::invalid_argument, "output", "partly in hidden",
                "hidden itself or memory apart from it");
  }
  struct part {
    const char* name;
    tensor_view view;
  };
  std::array<part, 4> parts{part{"output", *output}};
  std::size_t known = 1;
  const auto add = [&](const char* name, const tensor_view& view,
                       tensor_view& place) -> expected<void> {
    if (auto ok = views.place.join(name, view); !ok) return ok;
    for (const part& p : std::span(parts).first(known)) {
      if (auto ok = check_apart(name, view, p.name, p.view); !ok) return ok;
    }
    parts[known++] = {name, view};
    place = view;
    return {};
  };
  if (result.ids != nullptr) {
    const auto ids = view_picks("ids", result.ids, dtype::i32, tokens);
    if (!ids) return unexpected_error(ids.error());
    if (auto ok = add("ids", *ids, views.ids); !ok) return unexpected_error(ok.error());
  }
  if (result.weights != nullptr) {
    const auto weights = view_picks("weights", result.weights, dtype::f32, tokens);
    if (!weights) return unexpected_error(weights.error());
    if (auto ok = add("weights", *weights, views.weights); !ok) return unexpected_error(ok.error());
  }
  if (result.bad_rows != nullptr) {
    const auto bad = vector_of("bad_rows", result.bad_rows, tokens, "u8");
    if (!bad) return unexpected_error(bad.error());
    if (bad->type != dtype::u8)
      return fail(reason::invalid_dtype, "bad_rows", dtype_name(bad->type), "u8");
    if (bad->rows > 1 && bad->pitch != 1)
      return fail(reason::invalid_argument, "the stride of bad_rows", bad->pitch, "1");
    if (auto ok = add("bad_rows", *bad, views.bad_rows); !ok) return unexpected_error(ok.error());
  }
  return views;
}

client::layer_result call_tensors::into(const result_views& v) {
  client::layer_result into{
      .output = v.output.data, .type = v.output.type, .pitch = v.output.pitch};
  const auto elements = [](const tensor_view& view) { return std::size_t{view.rows} * view.width; };
  if (v.ids.given())
    into.ids = std::span(reinterpret_cast<std::int32_t*>(v.ids.data), elements(v.ids));
  if (v.weights.given())
    into.weights = std::span(reinterpret_cast<float*>(v.weights.data), elements(v.weights));
  if (v.bad_rows.given()) {
    into.bad_rows =
        std::span(reinterpret_cast<std::uint8_t*>(v.bad_rows.data), elements(v.bad_rows));
  }
  return into;
}

}  // namespace moetier::abi
