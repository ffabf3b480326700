#pragma once
// Quantise at load: experts of an unquantised model come out in another format, expert by expert as
// the store asks for them, so neither form of the model is ever whole in memory. The error that
// this costs is summed up and can be read at any time. Activation constants and biases pass
// unchanged. It owns one expert's staging and not the source.
// Thread: owner of the store (one call at a time); error() from the same.

#include <cstdint>
#include <memory>
#include <vector>

#include "schemas/base/error.hpp"
#include "schemas/model/model_description.hpp"
#include "workers/store/expert_source.hpp"

namespace moetier::workers {

// Over all matrices quantised so far; one loaded twice counts twice.
struct quantising_error {
  std::uint64_t matrices = 0;
  double max_abs = 0;            // the largest |stored - given| of all
  double rms_relative_max = 0;   // of the worst matrix
  double rms_relative_mean = 0;  // mean over matrices
};

class quantising_source final : public expert_source {
 public:
  // `source` gives experts of `model` and outlives this. reason::model_unsupported when the model
  // is quantised already, or its sizes do not fit the format's groups.
  static expected<std::unique_ptr<quantising_source>> create(expert_source& source,
                                                             const model_description& model,
                                                             quant_kind to);

  // What the experts are now: the source's model in the new format, with the fingerprint of that.
  const model_description& model() const noexcept { return model_; }
  quantising_error error() const noexcept;

  // reason::weight_mismatch where a weight is not finite; else the source's own.
  expected<void> load(layer_id layer, expert_id expert, const expert_buffers& into) override;

 private:
  quantising_source(expert_source& source, const model_description& given, quant_kind to);

  expert_source& source_;
  weight_format given_;
  model_description model_;
  std::vector<std::byte> gate_;  // one expert in the given format
  std::vector<std::byte> up_;
  std::vector<std::byte> down_;
  quantising_error error_;
  double rms_sum_ = 0;
};

}  // namespace moetier::workers
