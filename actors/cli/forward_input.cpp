#include "actors/cli/forward_input.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "actors/config/input_error.hpp"
#include "schemas/base/assert.hpp"
#include "schemas/safetensors/tensor_file.hpp"
#include "schemas/safetensors/tensor_writer.hpp"

namespace moetier::cli {
namespace {

template <class T>
std::vector<T> as(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

bool is_floating(dtype t) noexcept {
  return t == dtype::f32 || t == dtype::f16 || t == dtype::bf16;
}

class reader final {
 public:
  reader(const tensor_file& file, const forward_options& options)
      : file_(file), options_(options) {}

  expected<forward_input> read() {
    if (auto done = read_hidden(); !done) return tl::unexpected(done.error());
    const bool logits = find("logits") != nullptr;
    const bool ids = find("ids") != nullptr;
    if (logits && ids && options_.use.empty()) {
      return fail(reason::config_invalid, "--use", "not given",
                  "logits, ids or gate, as the file holds both logits and ids");
    }
    if (options_.use == "ids" ? !ids : options_.use == "logits" && !logits) {
      return fail(
          reason::config_invalid, "--use", options_.use,
          fmt::format("what the file holds, and it has no tensor {}", name_of(options_.use)));
    }
    const bool use_ids = options_.use == "ids" || (options_.use.empty() && ids);
    if (options_.use != "gate") {
      auto done = use_ids ? read_ids() : read_logits();
      if (!done) return tl::unexpected(done.error());
    }
    for (const auto& [name, into] :
         {std::pair{"token_ids", &in_.token_ids}, std::pair{"adapter_ids", &in_.adapter_ids}}) {
      if (auto done = read_integers(name, *into); !done) return tl::unexpected(done.error());
    }
    if (options_.check) {
      if (auto wanted = read_wanted(); !wanted) return tl::unexpected(wanted.error());
    }
    return std::move(in_);
  }

 private:
  std::string name_of(std::string_view tensor) const {
    return fmt::format("{}{}", options_.prefix, tensor);
  }
  const tensor_info* find(std::string_view tensor) const {
    return file_.header().find(name_of(tensor));
  }

  // The file is whole and only lacks what was asked for, most often by its prefix.
  unexpected_error missing(std::string_view tensor) const {
    constexpr std::size_t k_names_shown = 8;
    const auto& all = file_.header().tensors;
    std::string names;
    for (std::size_t i = 0; i < std::min(all.size(), k_names_shown); ++i) {
      names += fmt::format("{}{}", i == 0 ? "" : ", ", all[i].name);
    }
    if (all.size() > k_names_shown)
      names += fmt::format(" and {} more", all.size() - k_names_shown);
    return fail(reason::file_unreadable, fmt::format("tensor {}", name_of(tensor)),
                fmt::format("{} has none of that name; it has {}", file_.name(),
                            names.empty() ? "no tensors" : names));
  }

  // A [rows, columns] tensor of an allowed type; rows 0 = any.
  expected<const tensor_info*> matrix(std::string_view tensor, std::string_view allowed,
                                      std::initializer_list<dtype> types) const {
    const tensor_info* t = find(tensor);
    if (t == nullptr) return missing(tensor);
    if (std::find(types.begin(), types.end(), t->type->element) == types.end()) {
      return fail(reason::invalid_dtype, name_of(tensor), t->type->name, allowed);
    }
    constexpr std::uint64_t k_side_max = 1 << 30;
    if (t->rank != 2 || t->sizes[0] > k_side_max || t->sizes[1] > k_side_max) {
      return fail(reason::invalid_shape, name_of(tensor), fmt::format("{}", t->shape()),
                  "[tokens, columns]");
    }
    return t;
  }

  expected<void> same_tokens(const tensor_info& t, std::string_view tensor) const {
    if (t.sizes[0] == in_.tokens) return {};
    return fail(reason::invalid_shape, name_of(tensor), fmt::format("{}", t.shape()),
                fmt::format("[{}, columns], as hidden", in_.tokens));
  }

  expected<std::vector<std::byte>> bytes_of(const tensor_info& t) const {
    std::vector<std::byte> bytes(t.bytes());
    if (auto done = file_.read(t, bytes); !done) return tl::unexpected(done.error());
    return bytes;
  }

  expected<void> read_hidden() {
    const auto t = matrix(options_.hidden, "F32, F16, BF16", {dtype::f32, dtype::f16, dtype::bf16});
    if (!t) return tl::unexpected(t.error());
    in_.tokens = static_cast<std::uint32_t>((*t)->sizes[0]);
    in_.hidden_size = static_cast<std::uint32_t>((*t)->sizes[1]);
    in_.hidden_type = (*t)->type->element;
    return store(**t, in_.hidden);
  }

  expected<void> store(const tensor_info& t, std::vector<std::byte>& into) const {
    auto bytes = bytes_of(t);
    if (!bytes) return tl::unexpected(bytes.error());
    into = std::move(*bytes);
    return {};
  }

  expected<void> read_logits() {
    const auto t = matrix("logits", "F32, F16, BF16", {dtype::f32, dtype::f16, dtype::bf16});
    if (!t) return tl::unexpected(t.error());
    if (auto same = same_tokens(**t, "logits"); !same) return same;
    in_.experts = static_cast<std::uint32_t>((*t)->sizes[1]);
    in_.logits_type = (*t)->type->element;
    return store(**t, in_.logits);
  }

  expected<void> read_ids() {
    const auto ids = matrix("ids", "U8, I32, I64", {dtype::u8, dtype::i32, dtype::i64});
    if (!ids) return tl::unexpected(ids.error());
    const auto weights = matrix("weights", "F32", {dtype::f32});
    if (!weights) return tl::unexpected(weights.error());
    for (const auto& [t, name] : {std::pair{*ids, "ids"}, std::pair{*weights, "weights"}}) {
      if (auto same = same_tokens(*t, name); !same) return same;
    }
    if ((*ids)->sizes[1] != (*weights)->sizes[1]) {
      return fail(reason::invalid_shape, name_of("weights"), fmt::format("{}", (*weights)->shape()),
                  fmt::format("{}, as ids", (*ids)->shape()));
    }
    in_.top_k = static_cast<std::uint32_t>((*ids)->sizes[1]);
    auto weight_bytes = bytes_of(**weights);
    if (!weight_bytes) return tl::unexpected(weight_bytes.error());
    in_.weights = as<float>(*weight_bytes);
    return take_ids(**ids);
  }

  expected<void> take_ids(const tensor_info& t) {
    const auto bytes = bytes_of(t);
    if (!bytes) return tl::unexpected(bytes.error());
    switch (t.type->element) {
      case dtype::u8:
        for (const std::byte b : *bytes) in_.ids.push_back(std::to_integer<std::int32_t>(b));
        return {};
      case dtype::i32: in_.ids = as<std::int32_t>(*bytes); return {};
      default: break;
    }
    const auto wide = as<std::int64_t>(*bytes);
    for (std::size_t i = 0; i < wide.size(); ++i) {
      if (wide[i] < std::numeric_limits<std::int32_t>::min() ||
          wide[i] > std::numeric_limits<std::int32_t>::max()) {
        return fail(reason::invalid_argument, name_of("ids"), wide[i], "-1 (none) or an expert");
      }
      in_.ids.push_back(static_cast<std::int32_t>(wide[i]));
    }
    return {};
  }

  // An optional [tokens] tensor of integers.
  expected<void> read_integers(std::string_view tensor, std::vector<std::int32_t>& into) {
    const tensor_info* t = find(tensor);
    if (t == nullptr) return {};
    if (t->type->element != dtype::i32 && t->type->element != dtype::i64)
      return fail(reason::invalid_dtype, name_of(tensor), t->type->name, "I32, I64");
    if (t->rank != 1 || t->sizes[0] != in_.tokens) {
      return fail(reason::invalid_shape, name_of(tensor), fmt::format("{}", t->shape()),
                  fmt::format("[{}], as hidden", in_.tokens));
    }
    const auto bytes = bytes_of(*t);
    if (!bytes) return tl::unexpected(bytes.error());
    if (t->type->element == dtype::i32) {
      into = as<std::int32_t>(*bytes);
      return {};
    }
    for (const std::int64_t value : as<std::int64_t>(*bytes)) {
      if (value < -1 || value > std::numeric_limits<std::int32_t>::max())
        return fail(reason::invalid_argument, name_of(tensor), value, "-1 to 2147483647");
      into.push_back(static_cast<std::int32_t>(value));
    }
    return {};
  }

  expected<void> read_wanted() {
    const auto t =
        matrix(options_.expected, "F32, F16, BF16", {dtype::f32, dtype::f16, dtype::bf16});
    if (!t) return tl::unexpected(t.error());
    if ((*t)->sizes[0] != in_.tokens || (*t)->sizes[1] != in_.hidden_size) {
      return fail(reason::invalid_shape, name_of(options_.expected),
                  fmt::format("{}", (*t)->shape()),
                  fmt::format("[{}, {}], as hidden", in_.tokens, in_.hidden_size));
    }
    const auto bytes = bytes_of(**t);
    if (!bytes) return tl::unexpected(bytes.error());
    in_.wanted = to_f32((*t)->type->element, *bytes);
    return {};
  }

  const tensor_file& file_;
  const forward_options& options_;
  forward_input in_;
};

}  // namespace

std::vector<float> to_f32(dtype type, const std::vector<std::byte>& bytes) {
  MOETIER_ASSERT(is_floating(type));
  if (type == dtype::f32) return as<float>(bytes);
  std::vector<float> values;
  values.reserve(bytes.size() / 2);
  for (const std::uint16_t bits : as<std::uint16_t>(bytes)) {
    values.push_back(type == dtype::f16 ? f32_from_f16(bits) : f32_from_bf16(bits));
  }
  return values;
}

std::vector<std::byte> from_f32(dtype type, const std::vector<float>& values) {
  MOETIER_ASSERT(is_floating(type));
  std::vector<std::byte> bytes(values.size() * dtype_bytes(type));
  if (bytes.empty()) return bytes;
  if (type == dtype::f32) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t bits =
        type == dtype::f16 ? f16_from_f32(values[i]) : bf16_from_f32(values[i]);
    std::memcpy(bytes.data() + 2 * i, &bits, 2);
  }
  return bytes;
}

expected<forward_input> read_forward_input(const forward_options& options) {
  const auto file = tensor_file::open(options.in);
  if (!file) return tl::unexpected(config::of_input_file(file.error()));
  return reader(**file, options).read();
}

expected<void> check_against(const forward_input& in, const model_description& model) {
  if (in.hidden_size != model.hidden_size) {
    return fail(reason::invalid_shape, "hidden", fmt::format("[{}, {}]", in.tokens, in.hidden_size),
                fmt::format("[tokens, {}]", model.hidden_size));
  }
  if (!in.logits.empty() && in.experts != model.columns()) {
    return fail(reason::invalid_shape, "logits", fmt::format("[{}, {}]", in.tokens, in.experts),
                fmt::format("[tokens, {}]", model.columns()));
  }
  if (in.top_k != 0 && in.top_k != model.top_k) {
    return fail(reason::invalid_shape, "ids", fmt::format("[{}, {}]", in.tokens, in.top_k),
                fmt::format("[tokens, {}]", model.top_k));
  }
  return {};
}

expected<void> write_forward_output(const forward_options& options, const forward_input& in,
                                    const forward_output& out) {
  const std::vector<std::byte> rows = from_f32(in.hidden_type, out.rows);
  std::vector<tensor_to_write> tensors{{.name = "output",
                                        .element = in.hidden_type,
                                        .shape = {in.tokens, in.hidden_size},
                                        .bytes = rows}};
  if (options.with_routing) {
    tensors.push_back({.name = "ids",
                       .element = dtype::i32,
                       .shape = {in.tokens, out.top_k},
                       .bytes = std::as_bytes(std::span(out.ids))});
    tensors.push_back({.name = "weights",
                       .element = dtype::f32,
                       .shape = {in.tokens, out.top_k},
                       .bytes = std::as_bytes(std::span(out.weights))});
  }
  const std::vector<std::pair<std::string, std::string>> metadata{
      {"fingerprint", fmt::format("{:016x}", out.fingerprint)},
      {"layer", std::to_string(options.layer)},
      {"epoch", std::to_string(out.epoch.value)},
      {"generation", std::to_string(out.generation.value)},
      {"return_mode", out.return_mode},
      {"status", "OK"}};
  return write_tensors(options.out, tensors, metadata);
}

double deviation::relative() const noexcept {
  constexpr double k_scale_min = 1e-30;  // all zeros wanted: any difference is too much
  return largest / std::max(scale, k_scale_min);
}

deviation deviation_of(const forward_input& in, const forward_output& out) {
  // What is compared is what a reader of the file would see.
  const std::vector<float> rows = to_f32(in.hidden_type, from_f32(in.hidden_type, out.rows));
  MOETIER_ASSERT(rows.size() == in.wanted.size());
  deviation d;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (std::isfinite(in.wanted[i])) {
      d.scale = std::max(d.scale, std::abs(static_cast<double>(in.wanted[i])));
    }
    const double difference = std::abs(static_cast<double>(rows[i]) - in.wanted[i]);
    const bool equal = rows[i] == in.wanted[i] || (std::isnan(rows[i]) && std::isnan(in.wanted[i]));
    if (equal) continue;
    d.largest =
        std::max(d.largest,
                 std::isfinite(difference) ? difference : std::numeric_limits<double>::infinity());
  }
  return d;
}

}  // namespace moetier::cli
