#include "workers/weights/quantising_source.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "kernels/quant/matrix_quantiser.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::workers {

expected<std::unique_ptr<quantising_source>> quantising_source::create(
    expert_source& source, const model_description& model, quant_kind to) {
  if (model.format.quant != quant_kind::none)
    return fail(reason::model_unsupported, "quantization_config", quant_name(model.format.quant),
                "an unquantised model where weights are quantised at load");
  for (const auto& [name, width] : {std::pair{"hidden_size", model.hidden_size},
                                    std::pair{"intermediate_size", model.intermediate_size}}) {
    if (!fits_groups(to, width))
      return fail(reason::model_unsupported, name, width,
                  fmt::format("multiples of {} for {}", group_columns(to), quant_name(to)));
  }
  return std::unique_ptr<quantising_source>(new quantising_source(source, model, to));
}

quantising_source::quantising_source(expert_source& source, const model_description& given,
                                     quant_kind to)
    : source_(source), given_(given.format), model_(given) {
  const std::uint32_t h = given.hidden_size;
  const std::uint32_t i = given.intermediate_size;
  up_.resize(matrix_form_of(given_, i, h).bytes);
  gate_.resize(is_gated(given.activation.kind) ? up_.size() : 0);
  down_.resize(matrix_form_of(given_, h, i).bytes);
  if (to == quant_kind::none) return;
  model_.format = {.quant = to};
  model_.fingerprint = fingerprint_of(model_);
}

quantising_error quantising_source::error() const noexcept {
  quantising_error total = error_;
  if (total.matrices > 0) total.rms_relative_mean = rms_sum_ / static_cast<double>(total.matrices);
  return total;
}

expected<void> quantising_source::load(layer_id layer, expert_id expert,
                                       const expert_buffers& into) {
  if (model_.format.quant == quant_kind::none) return source_.load(layer, expert, into);
  expert_buffers given = into;  // the biases as they are
  given.gate = gate_;
  given.up = up_;
  given.down = down_;
  if (auto done = source_.load(layer, expert, given); !done) return done;
  struct matrix {
    std::string_view name;
    std::span<const std::byte> from;
    std::span<std::byte> into;
    std::uint32_t out, in;
  };
  const std::uint32_t h = model_.hidden_size;
  const std::uint32_t i = model_.intermediate_size;
  for (const matrix& one :
       {matrix{"gate", gate_, into.gate, i, h}, matrix{"up", up_, into.up, i, h},
        matrix{"down", down_, into.down, h, i}}) {
    if (one.from.empty()) continue;
    auto quantised = kernels::quantise_matrix(model_.format, given_, one.from, one.out, one.in);
    if (!quantised)
      return fail(
          reason::weight_mismatch,
          fmt::format("layer {} expert {} projection {}", layer.value, expert.value, one.name),
          "a weight that is not finite", "weights that can be quantised");
    MOETIER_ASSERT(quantised->bytes.size() == one.into.size());
    std::ranges::copy(quantised->bytes, one.into.begin());
    ++error_.matrices;
    error_.max_abs = std::max(error_.max_abs, quantised->error.max_abs);
    error_.rms_relative_max = std::max(error_.rms_relative_max, quantised->error.rms_relative);
    rms_sum_ += quantised->error.rms_relative;
  }
  return {};
}

}  // namespace moetier::workers
