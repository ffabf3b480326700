#pragma once
// One expert's page in the layout that the sm_90 kernels read (sm90_geometry.hpp), packed on the
// host: every byte of it, tails and gaps as zeros, so that a checksum over the page is well
// defined. The worker copies these bytes into device memory as they are. Thread: any (immutable).

#include <cstddef>
#include <span>
#include <string>

#include "kernels/backend.hpp"
#include "kernels/cuda/sm90_geometry.hpp"

namespace moetier::kernels::cuda {

// The device's view of a shape. Requires: quant none with bf16 weights, or fp8_block.
gemm_shape gemm_shape_of(const expert_shape& shape) noexcept;

class sm90_page final {
 public:
  // Requires: as gemm_shape_of(); H and I multiples of 64 (bf16) or 128 (fp8_block); gated.
  explicit sm90_page(const expert_shape& shape);

  std::size_t bytes() const noexcept { return layout_.bytes; }
  const page_layout& layout() const noexcept { return layout_; }
  const std::string& layout_id() const noexcept { return layout_id_; }
  // As Backend::pack_page().
  void pack(const expert_tensors& tensors, std::span<std::byte> page) const;

 private:
  void pack_fc1(const expert_tensors& tensors, std::byte* to) const;
  void pack_fc2(const expert_tensors& tensors, std::byte* to) const;
  void pack_scales(const expert_tensors& tensors, std::byte* page) const;
  void pack_biases(const expert_tensors& tensors, std::byte* page) const;

  expert_shape shape_;
  gemm_shape gemm_;
  page_layout layout_;
  std::string layout_id_;
};

}  // namespace moetier::kernels::cuda
