#pragma once
// The names that one model's files use for the tensors of its MoE layers: a family's names, the
// stem and form that these files have, the endings of their format. It says what a tensor is
// called, which types and shapes it may have, and what stands under the experts; whether it is
// there is the layer_tensors' business.
// Thread: any (immutable values and pure functions).

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/base/error.hpp"
#include "schemas/base/ids.hpp"
#include "schemas/model/model_description.hpp"
#include "schemas/model/stored_form.hpp"
#include "schemas/safetensors/shard_set.hpp"

namespace moetier::workers {

struct tensor_naming {
  const tensor_names* names = nullptr;
  std::string_view stem;
  bool packed = false;  // one tensor holds all experts of a layer
  stored_scheme scheme;

  std::string in_layer(std::uint32_t layer, std::string_view rest) const;
  std::string split_name(std::uint32_t layer, std::uint32_t expert, projection part,
                         std::string_view ending) const;
  std::string packed_name(std::uint32_t layer, projection part, std::string_view ending) const;
  std::string shared_name(std::uint32_t layer, projection part, std::string_view ending) const;
};

// The naming that these files follow: the first of the family's that names anything of an expert,
// or the family's first, so that what is missing is looked for under its usual name.
tensor_naming find_naming(const model_description& model, const stored_form& form,
                          const shard_set& shards);

using shape = std::vector<std::uint64_t>;

// One tensor as it must be: any of the types, any of the shapes.
struct wanted_tensor {
  std::string place;  // "layer 3 expert 1": how a refusal begins
  std::string name;
  std::vector<std::string_view> types;
  std::vector<shape> shapes;
};

// nullptr in the place if it is not there; reason::weight_mismatch when it is otherwise.
expected<tensor_place> find_if_there(const shard_set& shards, const wanted_tensor& wanted);
// It must be there.
expected<tensor_place> find_wanted(const shard_set& shards, const wanted_tensor& wanted);

inline std::vector<std::string_view> float_types() { return {"BF16", "F16", "F32"}; }

}  // namespace moetier::workers
