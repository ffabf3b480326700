#pragma once
// A Hugging Face model directory, opened for its experts: config.json, then the headers of all
// safetensors files, then every expert tensor accounted for by name, shape and element type before
// one is read. Only expert tensors, and routers and their tables when asked, are ever read, and of
// tensors that hold many experts only the part asked for. A missing, surplus or mis-shaped tensor
// is refused by layer, expert and name with what was found and expected. It is owned by the
// worker's shell (or a tool) and keeps no weights.
//
// Thread: any, after open(); several threads may load at once.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/base/error.hpp"
#include "schemas/base/ids.hpp"
#include "schemas/model/model_description.hpp"
#include "schemas/model/routing_tables.hpp"
#include "schemas/model/stored_form.hpp"
#include "schemas/safetensors/shard_set.hpp"
#include "workers/store/expert_source.hpp"
#include "workers/weights/layer_tensors.hpp"
#include "workers/weights/tensor_naming.hpp"

namespace moetier::workers {

struct checkpoint_options {
  bool routers = false;          // also find, check and digest the routers
  bool serve_nonfinite = false;  // unquantised experts with NaN or infinity are loaded too
};

// One layer's router, [columns, router_width] row-major. It may be f32 in a model of narrower
// experts.
struct router_matrix {
  dtype element = dtype::f32;
  std::vector<std::byte> bytes;
  std::vector<float> bias;  // [columns], added to the logits; or empty
};

class checkpoint final : public expert_source {
 public:
  static expected<std::unique_ptr<checkpoint>> open(const std::string& directory,
                                                    const checkpoint_options& options = {});

  // shared.count is 0 where the tier cannot hold the shared experts, whatever their size.
  const model_description& model() const noexcept { return model_; }
  // Why it cannot: "they are BF16 where the routed experts are nvfp4". Empty where it can, or where
  // there are none.
  const std::string& shared_refusal() const noexcept { return shared_refusal_; }
  // What these files call their tensors.
  const tensor_naming& naming() const noexcept { return naming_; }
  // Differs where the files' names, sizes, headers or sampled bytes do; compared before weights are
  // loaded.
  std::uint64_t digest() const noexcept { return shards_->digest(); }
  // Canonical bytes of one projection of one expert, scales and all; the largest of the three.
  std::size_t projection_bytes() const noexcept;

  // Canonical bytes, checked. Requires: buffers of matrix_form_of() each, `layer` is a MoE layer,
  // expert < E + shared.count.
  expected<void> load(layer_id layer, expert_id expert, const expert_buffers& into) override;

  // XXH3-64 of all routers' matrices and biases. Requires: opened with routers.
  std::uint64_t routers_digest() const noexcept { return routers_digest_; }

  // Requires: opened with routers, `layer` is a MoE layer.
  expected<router_matrix> read_router(layer_id layer) const;

  // What the routers have beside their matrices, for all MoE layers; reason::weight_mismatch by
  // layer and name.
  expected<routing_tables> read_routing_tables() const;

 private:
  checkpoint(model_description model, stored_form form, std::unique_ptr<shard_set> shards,
             const checkpoint_options& options);

  expected<void> find_tensors();
  expected<tensor_place> find_router(layer_id layer) const;
  expected<void> read_routers();

  const checkpoint_options options_;
  model_description model_;
  stored_form form_;
  std::unique_ptr<shard_set> shards_;
  tensor_naming naming_;
  std::string shared_refusal_;
  std::vector<layer_tensors> layers_;  // by MoE layer index
  std::vector<tensor_place> routers_;  // by MoE layer index; empty unless asked
  std::uint64_t routers_digest_ = 0;
};

}  // namespace moetier::workers
