#pragma once
// The tensors of a call and of its result, from DLPack to what the source half takes, in two steps:
// view() checks shapes, dtypes, strides, places and overlaps and touches no row; read() takes views
// of host memory and copies small integer tensors dense and narrowed to 32 bits. In between,
// whoever owns this brings rows from a device to the host. Rows themselves are not copied here.
// One per session; a read call's spans hold until the next read. Thread: owner.

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

// Of `hidden.rows` rows each, where given; all at one place.
struct call_views {
  tensor_view hidden;
  tensor_view logits;
  tensor_view ids;
  tensor_view weights;
  tensor_view token_ids;
  tensor_view adapter_ids;
  shared_place place;
};

struct result_views {
  tensor_view output;
  tensor_view ids;
  tensor_view weights;
  tensor_view bad_rows;
  shared_place place;  // that of the call
};

class call_tensors final {
 public:
  explicit call_tensors(const tensor_sizes& sizes);

  expected<call_views> view(const moetier_call& call) const;
  // Everything of a call but its deadline. Requires: views of host memory.
  expected<client::layer_call> read(const moetier_call& call, const call_views& views);

  // `called` is what view() made of the result's call; its hidden rows may be the output itself.
  expected<result_views> view(const moetier_result& result, const tensor_view& hidden,
                              const shared_place& called) const;
  // Requires: views of host memory.
  static client::layer_result into(const result_views& views);

 private:
  expected<void> read_ids(const tensor_view& view);
  void read_weights(const tensor_view& view);
  expected<tensor_view> view_picks(const char* name, const DLTensor* tensor, dtype type,
                                   std::uint32_t tokens) const;

  tensor_sizes sizes_;
  std::vector<std::int32_t> ids_;  // [tokens_max, k]
  std::vector<float> weights_;     // [tokens_max, k]
  std::vector<std::int32_t> token_ids_;
  std::vector<std::int32_t> adapter_ids_;
};

}  // namespace moetier::abi
