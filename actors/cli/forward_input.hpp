#pragma once
// The rows of one `moetier forward`: read from a safetensors file, checked, and the result written
// back. Nothing is sent from here. Thread: owner.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "actors/cli/command_line.hpp"
#include "schemas/base/dtype.hpp"
#include "schemas/base/error.hpp"
#include "transport/snapshot/routing_snapshot.hpp"

namespace moetier::cli {

struct forward_input {
  std::uint32_t tokens = 0;
  std::uint32_t hidden_size = 0;
  dtype hidden_type = dtype::f32;
  std::vector<std::byte> hidden;  // [tokens, H]
  dtype logits_type = dtype::f32;
  std::vector<std::byte> logits;  // [tokens, columns], or empty with ids and weights
  std::uint32_t experts = 0;
  std::uint32_t top_k = 0;        // of ids; 0 = routed by the tier
  std::vector<std::int32_t> ids;  // [tokens, k]
  std::vector<float> weights;
  std::vector<std::int32_t> token_ids;    // [tokens] or empty
  std::vector<std::int32_t> adapter_ids;  // [tokens] or empty
  std::vector<float> wanted;              // `output` as f32, with --check
};

struct forward_output {
  std::vector<float> rows;  // [tokens, H]
  std::uint32_t top_k = 0;
  std::vector<std::int32_t> ids;  // [tokens, k] as routed
  std::vector<float> weights;
  std::uint64_t fingerprint = 0;
  epoch_number epoch;
  generation_number generation;
  std::string return_mode;
};

// reason::file_unreadable, file_malformed, invalid_argument (both or neither of logits and ids),
// invalid_dtype, invalid_shape.
expected<forward_input> read_forward_input(const forward_options& options);

// Against the model that the tier serves.
expected<void> check_against(const forward_input& input, const model_description& model);

// Output in hidden's element type; whole file or nothing.
expected<void> write_forward_output(const forward_options& options, const forward_input& input,
                                    const forward_output& output);

// How far a result is from `wanted`. Rounding grows with the values, so it is judged by their
// scale.
struct deviation {
  double largest = 0.0;  // absolute difference; infinite where only one of the two is finite
  double scale = 0.0;    // the largest absolute value wanted, of those that are finite

  double relative() const noexcept;  // largest / scale
};
deviation deviation_of(const forward_input& input, const forward_output& output);

// Values of `bytes` of a floating type as f32.
std::vector<float> to_f32(dtype type, const std::vector<std::byte>& bytes);
std::vector<std::byte> from_f32(dtype type, const std::vector<float>& values);

}  // namespace moetier::cli
