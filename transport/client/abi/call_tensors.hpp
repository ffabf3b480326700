#pragma once
// The tensors of a call and of its result, from DLPack to what the source half takes: shapes,
// dtypes and strides checked, small integer tensors copied dense and narrowed to 32 bits. Rows
// themselves are not copied here. One per session; a read call's spans hold until the next read.
// Thread: owner.

#include <cstdint>
#include <vector>

#include "schemas/base/error.hpp"
#include "transport/client/abi/moetier.h"
#include "transport/client/abi/tensor_view.hpp"
#include "transport/client/source/source_session.hpp"

namespace moetier::abi {

struct tensor_sizes {
  std::uint32_t tokens_max = 0;
  std::uint32_t hidden_size = 0;
  std::uint32_t columns = 0;  // of the router's logits
  std::uint32_t top_k = 0;
};

class call_tensors final {
 public:
  explicit call_tensors(const tensor_sizes& sizes);

  // Everything of a call but its deadline; `hidden` is where its rows lie.
  expected<client::layer_call> read(const moetier_call& call, tensor_view& hidden);
  expected<client::layer_result> read(const moetier_result& result, std::uint32_t tokens,
                                      const tensor_view& hidden) const;

 private:
  expected<void> read_ids(const DLTensor* tensor, std::uint32_t tokens);
  expected<void> read_weights(const DLTensor* tensor, std::uint32_t tokens);
  expected<tensor_view> read_picks(const char* name, const DLTensor* tensor, dtype type,
                                   std::uint32_t tokens) const;

  tensor_sizes sizes_;
  std::vector<std::int32_t> ids_;  // [tokens_max, k]
  std::vector<float> weights_;     // [tokens_max, k]
  std::vector<std::int32_t> token_ids_;
  std::vector<std::int32_t> adapter_ids_;
};

}  // namespace moetier::abi
