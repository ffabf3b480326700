#pragma once
// cuda_ref: the readable ExpertLayer, for every weight format and activation, any H and I, f32 and
// bf16 rows, f32 sums. Pages are canonical (kernels/reference/canonical_page.hpp). It takes the
// place of a fast layer by name only, and tests judge others by it.
//
// Thread: as ExpertLayer.

#include <string>

#include "kernels/cuda/cuda_ref_expert.hpp"
#include "kernels/cuda/expert_layer.hpp"
#include "kernels/reference/canonical_page.hpp"

namespace moetier::kernels::cuda {

class cuda_ref_layer final : public ExpertLayer {
 public:
  // Requires: as canonical_page.
  cuda_ref_layer(const expert_shape& shape, const device_size& device);

  std::string_view identity() const noexcept override { return identity_; }
  std::string_view layout_id() const noexcept override { return layout_id_; }
  const expert_shape& shape() const noexcept override { return shape_; }
  bool row_invariant() const noexcept override { return true; }
  std::size_t page_bytes() const noexcept override { return page_.bytes(); }
  void pack_page(const expert_tensors& tensors, std::span<std::byte> page) const override {
    page_.pack(tensors, page);
  }
  std::size_t workspace_bytes(const layer_capacity& capacity) const noexcept override;
  launch_status init_workspace(std::span<std::byte> workspace, void* stream) const override;
  // Checks the slot ids; compute() reads them as they are.
  launch_status group(const layer_call& call, void* stream) const override;
  launch_status compute(const layer_call& call, void* stream) const override;

 private:
  bool fits(const layer_call& call) const noexcept;
  ref_expert_args args_of(const layer_call& call) const noexcept;

  expert_shape shape_;
  device_size device_;
  canonical_page page_;
  ref_page where_;
  std::string identity_;
  std::string layout_id_;
};

}  // namespace moetier::kernels::cuda
