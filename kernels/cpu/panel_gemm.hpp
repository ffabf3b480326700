#pragma once
// Panel gemm: one matrix product over panels, out = rows x W^T, packing of rows included: what a
// panel_backend does with a block of rows, alone and on the caller's thread. For benches, and for
// tests that look at single products. It owns no memory. Thread: any (an immutable value).

#include <cstddef>
#include <span>

#include "kernels/cpu/panel_product.hpp"

namespace moetier::kernels {

class panel_gemm final {
 public:
  // W is [outputs, depth], both >= 1. Requires: a depth that fits the format's groups; a machine
  // that runs `kernels`.
  panel_gemm(const panel_kernels& kernels, const weight_format& format, std::uint32_t outputs,
             std::uint32_t depth) noexcept;

  std::size_t weight_bytes() const noexcept { return strip_.end_bytes(); }
  std::size_t workspace_bytes(std::uint32_t rows) const noexcept;

  // Requires: panels.size() == weight_bytes(), 64-byte aligned; canonical bytes of W.
  void pack(std::span<const std::byte> matrix, std::span<std::byte> panels) const;
  // out[r][n], rows and outputs without gaps. Requires: 1 to k_block_rows_max rows; panels and
  // workspace 64-byte aligned, workspace.size() >= workspace_bytes(count).
  void run(const std::byte* panels, const float* rows, std::uint32_t count, float* out,
           std::span<std::byte> workspace) const noexcept;

 private:
  const panel_kernels& kernels_;
  panel_product product_;
  weight_format format_;
  std::uint32_t outputs_;
  panel_strip strip_;
};

}  // namespace moetier::kernels
