#pragma once
// Where the tensors of one MoE layer lie in the files, every one checked by name, type and shape
// before a byte is read. Made when a checkpoint is opened; memory grows with tensors that are
// there, never with what a configuration claims. Thread: any (an immutable value).

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/base/error.hpp"
#include "schemas/model/model_description.hpp"
#include "schemas/safetensors/shard_set.hpp"
#include "workers/weights/tensor_naming.hpp"

namespace moetier::workers {

// The tensors of one matrix, or of one matrix of all experts.
struct matrix_tensors {
  tensor_place codes;
  tensor_place scales;        // where the format has them
  tensor_place second;        // nvfp4
  tensor_place input_scale;   // may lack
  tensor_place stored_shape;  // int4_g128
};

struct layer_tensors {
  // Split: gate, up, down of each expert, one after the other. Packed: gate (or gate and up), up,
  // down of all.
  std::vector<matrix_tensors> experts;
  std::array<tensor_place, k_projections> biases{};    // packed ones
  std::array<matrix_tensors, k_projections> shared{};  // where the tier can hold them
};

// Types and shape of one matrix's codes and scales in these files, for `leading` experts in one
// tensor (0: no such dimension).
struct matrix_want {
  std::vector<std::string_view> codes_types;
  shape codes;
  std::vector<std::string_view> scales_types;
  std::vector<shape> scales;
};
matrix_want want_of(const model_description& model, const stored_scheme& scheme, std::uint64_t out,
                    std::uint64_t in, std::uint64_t leading = 0);

expected<layer_tensors> find_layer(const model_description& model, const tensor_naming& naming,
                                   const shard_set& shards, layer_id layer);

// Fills in the shared experts' tensors. `refusal` says why the tier cannot hold them, if it cannot
// (another format than the routed ones); reason::weight_mismatch when one lacks or is mis-shaped.
expected<void> find_shared(const model_description& model, const tensor_naming& naming,
                           const shard_set& shards, layer_id layer, layer_tensors& into,
                           std::string& refusal);

// Refuses tensors under the names of experts that no layer wants.
expected<void> check_surplus(const model_description& model, const tensor_naming& naming,
                             const shard_set& shards, const std::vector<layer_tensors>& wanted);

}  // namespace moetier::workers
