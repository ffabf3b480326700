#pragma once
// cpu_ref: the readable Backend. Plain loops, any size, any CPU; each output element is one chain
// of fma over ascending k in f32, so its bits depend on the row and the expert alone. Its page is
// the three tensors one after another as the checkpoint holds them. Made by make_cpu_backend();
// one thread computes. Thread: as Backend.

#include <cstddef>
#include <string_view>

#include "kernels/backend.hpp"

namespace moetier::kernels {

class cpu_ref_backend final : public Backend {
 public:
  // Requires: a shape that make_cpu_backend() has checked.
  explicit cpu_ref_backend(const expert_shape& shape) : shape_(shape) {}

  std::string_view identity() const noexcept override { return "moetier.cpu.ref.none"; }
  std::string_view layout_id() const noexcept override;
  bool row_invariant() const noexcept override { return true; }
  const expert_shape& shape() const noexcept override { return shape_; }
  std::size_t page_bytes() const noexcept override;
  void pack_page(const expert_tensors& tensors, std::span<std::byte> page) const override;
  std::size_t workspace_bytes(std::uint32_t rows, std::uint32_t k_in) const noexcept override;
  compute_status run(const expert_call& call) override;

 private:
  std::size_t matrix_bytes() const noexcept;  // of gate, of up, of down

  expert_shape shape_;
};

}  // namespace moetier::kernels
