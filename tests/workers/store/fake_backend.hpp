#pragma once
// A Backend that only packs: a page is the three projections one after the other, padded with
// zeros to 64 bytes. It computes nothing. Thread: any.

#include <algorithm>
#include <cstring>

#include "kernels/backend.hpp"

namespace moetier::workers {

class fake_backend final : public kernels::Backend {
 public:
  explicit fake_backend(kernels::expert_shape shape) : shape_(shape) {}

  std::string_view identity() const noexcept override { return "moetier.fake.pack.none"; }
  std::string_view layout_id() const noexcept override { return "plain"; }
  bool row_invariant() const noexcept override { return true; }
  const kernels::expert_shape& shape() const noexcept override { return shape_; }
  std::size_t page_bytes() const noexcept override {
    const std::size_t bytes = 3 * std::size_t{shape_.hidden_size} * shape_.intermediate_size *
                              dtype_bytes(shape_.format.stored);
    return (bytes + 63) / 64 * 64;
  }
  void pack_page(const kernels::expert_tensors& tensors, std::span<std::byte> page) const override {
    auto at = page.begin();
    for (const auto& part : {tensors.gate, tensors.up, tensors.down})
      at = std::copy(part.begin(), part.end(), at);
    std::fill(at, page.end(), std::byte{0});
  }
  std::size_t workspace_bytes(std::uint32_t, std::uint32_t) const noexcept override { return 0; }
  kernels::compute_status run(const kernels::expert_call&) override {
    return kernels::compute_status::ok;
  }

 private:
  kernels::expert_shape shape_;
};

}  // namespace moetier::workers
