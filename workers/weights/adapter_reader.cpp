#include "workers/weights/adapter_reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "schemas/file/printable.hpp"
#include "schemas/safetensors/tensor_file.hpp"
#include "workers/weights/adapter_config.hpp"
#include "workers/weights/tensor_floats.hpp"

namespace moetier::workers {
namespace {

constexpr std::array k_parts{projection::gate, projection::up, projection::down};
constexpr std::string_view k_prefix = "base_model.model.";
constexpr std::array<std::string_view, 2> k_endings{".lora_A.weight", ".lora_B.weight"};

// A name read from the left.
class name_reader final {
 public:
  explicit name_reader(std::string_view rest) : rest_(rest) {}

  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  // A number without leading zeros, and the dot behind it.
  std::optional<std::uint32_t> take_number() {
    std::uint32_t value = 0;
    const auto [end, problem] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    const auto digits = static_cast<std::size_t>(end - rest_.data());
    if (problem != std::errc{} || (digits > 1 && rest_.front() == '0')) return std::nullopt;
    rest_.remove_prefix(digits);
    return take(".") ? std::optional(value) : std::nullopt;
  }
  std::string_view rest() const noexcept { return rest_; }

 private:
  std::string_view rest_;
};

struct named_matrix {
  std::uint32_t layer_index = 0;
  std::uint32_t expert = 0;
  projection part = projection::up;
  bool is_b = false;
};

// Which matrix of which routed expert the name stands for, if any.
std::optional<named_matrix> matrix_of(std::string_view name, const model_description& model,
                                      const tensor_naming& naming) {
  name_reader in(name);
  if (!in.take(k_prefix) || !in.take(naming.stem)) return std::nullopt;
  const auto layer = in.take_number();
  if (!layer || *layer >= model.layers_total || !in.take(naming.names->experts))
    return std::nullopt;
  const int layer_index = moe_index(model, layer_id(static_cast<std::uint16_t>(*layer)));
  const auto expert = in.take_number();
  if (layer_index < 0 || !expert || *expert >= model.experts) return std::nullopt;
  for (const projection part : k_parts) {
    if (part == projection::gate && !is_gated(model.activation.kind)) continue;
    const std::string_view word = naming.names->split[static_cast<std::size_t>(part)];
    for (std::size_t which = 0; which < k_endings.size(); ++which) {
      if (in.rest() != fmt::format("{}{}", word, k_endings[which])) continue;
      return named_matrix{static_cast<std::uint32_t>(layer_index), *expert, part, which == 1};
    }
  }
  return std::nullopt;
}

// The matrices of one expert: A and B of gate, up, down.
using expert_matrices = std::array<std::array<const tensor_info*, 2>, k_projections>;
using matrix_map = std::map<std::pair<std::uint32_t, std::uint32_t>, expert_matrices>;

class reading final {
 public:
  reading(const model_description& model, const tensor_naming& naming, const tensor_file& file,
          const adapter_config& config)
      : model_(model), naming_(naming), file_(file), config_(config) {}

  // Finds every tensor's place; no byte is read yet.
  expected<matrix_map> sorted() const {
    matrix_map found;
    for (const tensor_info& tensor : file_.header().tensors) {
      const auto is = matrix_of(tensor.name, model_, naming_);
      if (!is)
        return fail(reason::lora_unsupported,
                    fmt::format("tensor {} is none of a routed expert; only {}",
                                printable(tensor.name), expected_names()));
      if (auto fits = check(tensor, *is); !fits) return unexpected_error(fits.error());
      found[{is->layer_index, is->expert}][static_cast<std::size_t>(is->part)][is->is_b ? 1 : 0] =
          &tensor;
    }
    if (found.empty())
      return fail(reason::weight_mismatch, printable(file_.name()), "no tensors", expected_names());
    for (const auto& [place, matrices] : found) {
      if (auto whole = check_whole(place, matrices); !whole) return unexpected_error(whole.error());
    }
    return found;
  }

  expected<adapter_ptr> read(const matrix_map& found) const {
    auto made = std::make_shared<adapter>();
    std::size_t count = 0;
    for (const auto& [place, matrices] : found) {
      for (const auto& pair : matrices) {
        for (const tensor_info* tensor : pair) count += elements(tensor);
      }
    }
    made->values.resize(count);  // grows with what the file holds, checked against its size
    made->experts.reserve(found.size());
    std::size_t at = 0;
    for (const auto& [place, matrices] : found) {
      adapter_expert expert{.layer_index = place.first, .expert = place.second, .matrices = {}};
      expert.matrices.rank = config_.rank;
      expert.matrices.scale = config_.scale;
      for (const projection part : k_parts) {
        const auto& pair = matrices[static_cast<std::size_t>(part)];
        std::array<const float*, 2> into{};
        for (std::size_t which = 0; which < pair.size(); ++which) {
          if (pair[which] == nullptr) continue;
          const std::span values(made->values.data() + at, elements(pair[which]));
          if (auto done = read_floats({&file_, pair[which]}, "adapter", 0, 1, values); !done)
            return unexpected_error(done.error());
          into[which] = values.data();
          at += values.size();
        }
        of(expert.matrices, part) = {into[0], into[1]};
      }
      made->experts.push_back(expert);
    }
    return adapter_ptr(std::move(made));
  }

  std::uint64_t bytes() const {
    std::uint64_t all = 0;
    for (const tensor_info& tensor : file_.header().tensors)
      all += elements(&tensor) * sizeof(float);
    return all;
  }

 private:
  static std::size_t elements(const tensor_info* tensor) {
    return tensor == nullptr ? 0
                             : static_cast<std::size_t>(tensor->bytes()) * 8 / tensor->type->bits;
  }

  static kernels::lora_pair& of(kernels::lora_expert& expert, projection part) {
    if (part == projection::gate) return expert.gate;
    return part == projection::up ? expert.up : expert.down;
  }

  std::string name_of(std::uint32_t layer_index, std::uint32_t expert, projection part,
                      bool is_b) const {
    return fmt::format("{}{}", k_prefix,
                       naming_.split_name(model_.moe_layers[layer_index].value, expert, part,
                                          k_endings[is_b ? 1 : 0]));
  }

  std::string expected_names() const {
    return fmt::format("{}{}LAYER.{}EXPERT.{}{} and its like", k_prefix, naming_.stem,
                       naming_.names->experts, naming_.names->split[1], k_endings[0]);
  }

  expected<void> check(const tensor_info& tensor, const named_matrix& is) const {
    const std::uint64_t hidden = model_.hidden_size;
    const std::uint64_t inner = model_.intermediate_size;
    const bool down = is.part == projection::down;
    const std::uint64_t out = down ? hidden : inner;
    const std::uint64_t in = down ? inner : hidden;
    const shape wanted = is.is_b ? shape{out, config_.rank} : shape{config_.rank, in};
    const auto types = float_types();
    const bool typed = std::ranges::find(types, tensor.type->name) != types.end();
    if (typed && std::ranges::equal(wanted, tensor.shape())) return {};
    return fail(reason::weight_mismatch, printable(tensor.name),
                shape_text(*tensor.type, tensor.shape()),
                shape_text(tensor_type_of(dtype::f32), wanted));
  }

  expected<void> check_whole(std::pair<std::uint32_t, std::uint32_t> place,
                             const expert_matrices& matrices) const {
    for (const projection part : k_parts) {
      if (part == projection::gate && !is_gated(model_.activation.kind)) continue;
      for (const bool is_b : {false, true}) {
        if (matrices[static_cast<std::size_t>(part)][is_b ? 1 : 0] != nullptr) continue;
        return fail(reason::weight_mismatch,
                    printable(name_of(place.first, place.second, part, is_b)), "no tensor",
                    "all projections of an expert that is touched");
      }
    }
    return {};
  }

  const model_description& model_;
  const tensor_naming& naming_;
  const tensor_file& file_;
  const adapter_config& config_;
};

}  // namespace

expected<adapter_ptr> read_adapter(const std::string& directory, const model_description& model,
                                   const tensor_naming& naming, std::size_t bytes_max) {
  if (naming.names->split[1].empty())
    return fail(reason::lora_unsupported,
                fmt::format("{} has no tensors of single experts to name", model.model_type));
  const auto config = read_adapter_config(fmt::format("{}/adapter_config.json", directory));
  if (!config) return unexpected_error(config.error());
  const auto file = tensor_file::open(fmt::format("{}/adapter_model.safetensors", directory));
  if (!file) return unexpected_error(file.error());
  const reading in(model, naming, **file, *config);
  const auto found = in.sorted();
  if (!found) return unexpected_error(found.error());
  if (in.bytes() > bytes_max)
    return fail(reason::memory_insufficient, "the adapter", in.bytes(), bytes_max);
  return in.read(*found);
}

}  // namespace moetier::workers
