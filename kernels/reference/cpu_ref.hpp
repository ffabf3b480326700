#pragma once
// cpu_ref: the readable Backend. Plain loops, any format, size and CPU; each output element is one
// chain of fma over ascending k in f32 on the dequantised weights, so its bits depend on the row
// and the expert alone. Made by make_cpu_backend(); one thread computes. Thread: as Backend.

#include <cstddef>
#include <string>
#include <string_view>

#include "kernels/backend.hpp"
#include "kernels/reference/canonical_page.hpp"

namespace moetier::kernels {

class cpu_ref_backend final : public Backend {
 public:
  // Requires: a shape that make_cpu_backend() has checked.
  explicit cpu_ref_backend(const expert_shape& shape);

  std::string_view identity() const noexcept override { return identity_; }
  std::string_view layout_id() const noexcept override { return layout_id_; }
  bool row_invariant() const noexcept override { return true; }
  bool supports_lora() const noexcept override;
  const expert_shape& shape() const noexcept override { return shape_; }
  std::size_t page_bytes() const noexcept override { return page_.bytes(); }
  void pack_page(const expert_tensors& tensors, std::span<std::byte> page) const override {
    page_.pack(tensors, page);
  }
  std::size_t workspace_bytes(std::uint32_t rows, std::uint32_t k_in) const noexcept override;
  compute_status run(const expert_call& call) override;

 private:
  void run_entry(const expert_call& call, const expert_entry& entry) const noexcept;

  expert_shape shape_;
  canonical_page page_;
  std::string identity_;
  std::string layout_id_;
};

}  // namespace moetier::kernels
