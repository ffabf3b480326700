#pragma once
// How a model's files hold it, beyond what the model is: which family names their tensors, how
// quantised matrices are stored, which routers have biases or tables. Read from config.json beside
// the description; only those that read the files need it. Thread: any (values).

#include <cstdint>
#include <string_view>
#include <vector>

#include "schemas/model/family.hpp"

namespace moetier {

// The stored form of one quantised matrix: the endings of its tensors' names. Unquantised files
// have codes alone.
struct stored_scheme {
  std::string_view codes = ".weight";
  std::string_view codes_type{};    // as safetensors names it; empty: the model's element type
  std::string_view scales{};        // empty: none
  std::string_view scales_type{};   // empty: f32 or bf16
  std::string_view second{};        // nvfp4's s2
  std::string_view input_scale{};   // may stand; only checked
  std::string_view stored_shape{};  // i64 [out, in], checked

  bool operator==(const stored_scheme&) const = default;
};

struct stored_form {
  const family* kin = nullptr;
  stored_scheme experts{};
  bool selection_bias = false;        // every layer that is not hashed has one
  std::vector<bool> hashed{};         // by MoE layer index: experts by token id; empty: none
  std::string_view shared_refusal{};  // why the tier cannot hold the shared experts; empty: it can
};

}  // namespace moetier
