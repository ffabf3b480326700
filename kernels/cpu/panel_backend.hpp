#pragma once
// Panel backend: the Backend of CPUs with vector units, over the panel kernels of one instruction
// set. A call goes in waves; in each wave threads first interleave rows, then share (block, panel
// range) items of FC1, then panel ranges of FC2. They never split K, and a panel range of FC2 walks
// the wave's blocks in order, so sums over a row's entries have one order whatever the number of
// threads. Products themselves are panel_product's; adapters add to a row's sums between product
// and bias. Made by make_cpu_backend(); owns its threads. Thread: as Backend.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/backend.hpp"
#include "kernels/cpu/compute_pool.hpp"
#include "kernels/cpu/panel_kernels.hpp"
#include "kernels/cpu/panel_page.hpp"
#include "kernels/cpu/panel_product.hpp"
#include "kernels/cpu/wave.hpp"

namespace moetier::kernels {

class panel_backend final : public Backend {
 public:
  // Requires: a shape and a number of threads that make_cpu_backend() has checked; a machine that
  // runs `kernels`. May throw std::system_error when threads cannot start.
  panel_backend(const expert_shape& shape, const panel_kernels& kernels, unsigned threads);

  std::string_view identity() const noexcept override { return identity_; }
  std::string_view layout_id() const noexcept override { return page_.layout_id(); }
  bool row_invariant() const noexcept override { return true; }
  bool supports_lora() const noexcept override { return shape_.format.quant == quant_kind::none; }
  const expert_shape& shape() const noexcept override { return shape_; }
  std::size_t page_bytes() const noexcept override { return page_.bytes(); }
  void pack_page(const expert_tensors& tensors, std::span<std::byte> page) const override {
    page_.pack(tensors, page);
  }
  std::size_t workspace_bytes(std::uint32_t rows, std::uint32_t k_in) const noexcept override;
  compute_status run(const expert_call& call) override;

 private:
  struct scratch;
  std::uint32_t wave_rows(std::size_t entries) const noexcept;
  std::size_t lay_out(std::uint32_t rows, std::byte* base, scratch* out) const noexcept;
  std::uint32_t range_panels(const panel_strip& strip, bool alone) const noexcept;
  void compute(const wave& w, const scratch& s, const expert_call& call) noexcept;

  float* expanded_of(const scratch& s, unsigned lane) const noexcept;
  void run_fc1(const wave& w, const wave_block& block, const scratch& s, panel_range range,
               unsigned lane) const noexcept;
  void run_fc2(const wave& w, const wave_block& block, const scratch& s, return_mode mode,
               panel_range range, unsigned lane) const noexcept;

  void lower_inputs(const wave_tile& tile, const wave& w, const scratch& s) const noexcept;
  void lower_activated(const wave_tile& tile, const wave& w, const scratch& s,
                       unsigned lane) const noexcept;
  void add_lora(const panel_strip& strip, std::uint32_t panel, const wave_tile& tile, const wave& w,
                const scratch& s, float* sums) const noexcept;

  expert_shape shape_;
  panel_page page_;
  const panel_kernels& kernels_;
  panel_product product_;
  std::string identity_;
  compute_pool pool_;
};

}  // namespace moetier::kernels
