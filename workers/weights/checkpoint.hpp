#pragma once
// A Hugging Face model directory, opened for its experts: config.json, then the headers of all
// safetensors files, then every expert tensor accounted for by name, shape and element type before
// one is read. Only expert tensors, and routers when asked, are ever read. A missing, surplus,
// partial or mis-shaped tensor is refused by layer, expert and name with what was found and
// expected. It is owned by the worker's shell (or a tool) and keeps no weights.
//
// Thread: any, after open(); several threads may load at once.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/base/error.hpp"
#include "schemas/base/ids.hpp"
#include "schemas/model/model_description.hpp"
#include "schemas/safetensors/shard_set.hpp"
#include "workers/store/expert_source.hpp"
#include "workers/weights/dialect.hpp"

namespace moetier::workers {

struct checkpoint_options {
  bool routers = false;  // also find and check the routers' tensors
};

// One layer's router, [E, H] row-major. It may be f32 in a model of narrower experts.
struct router_matrix {
  dtype element = dtype::f32;
  std::vector<std::byte> bytes;
};

class checkpoint final : public expert_source {
 public:
  static expected<std::unique_ptr<checkpoint>> open(const std::string& directory,
                                                    const checkpoint_options& options = {});

  const model_description& model() const noexcept { return model_; }
  // Differs where the files' names, sizes or headers do; compared before weights are loaded.
  std::uint64_t digest() const noexcept { return shards_->digest(); }
  // Bytes of one projection of one expert.
  std::size_t projection_bytes() const noexcept;

  // Requires: buffers of projection_bytes() each, `layer` is a MoE layer, expert < E.
  expected<void> load(layer_id layer, expert_id expert, const expert_buffers& into) override;

  // Requires: opened with routers, `layer` is a MoE layer.
  expected<router_matrix> read_router(layer_id layer) const;

 private:
  checkpoint(model_description model, std::unique_ptr<shard_set> shards, const dialect& names);

  std::string_view find_stem() const noexcept;
  expected<void> check(const tensor_info& tensor, bool routers) const;
  expected<void> find_experts(layer_id layer);
  expected<void> find_router(layer_id layer);

  model_description model_;
  std::unique_ptr<shard_set> shards_;
  const dialect& names_;
  std::string_view stem_;
  std::vector<tensor_place> experts_;  // by (MoE layer index, expert, projection)
  std::vector<tensor_place> routers_;  // by MoE layer index; empty unless asked
};

}  // namespace moetier::workers
