#pragma once
// Panel backend: the Backend of CPUs with vector units, over the panel kernels of one instruction
// set. A call goes in waves; in each wave threads first interleave rows, then share (block, panel
// range) items of FC1, then panel ranges of FC2. They never split K, and a panel range of FC2 walks
// the wave's blocks in order, so sums over a row's entries have one order whatever the number of
// threads. Made by make_cpu_backend(); owns its threads. Thread: as Backend.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/backend.hpp"
#include "kernels/cpu/compute_pool.hpp"
#include "kernels/cpu/panel_kernels.hpp"
#include "kernels/cpu/panel_page.hpp"
#include "kernels/cpu/wave.hpp"

namespace moetier::kernels {

class panel_backend final : public Backend {
 public:
  // Requires: a shape and a number of threads that make_cpu_backend() has checked; a machine that
  // runs `kernels`. May throw std::system_error when threads cannot start.
  panel_backend(const expert_shape& shape, const panel_kernels& kernels, unsigned threads);

  std::string_view identity() const noexcept override { return kernels_.identity; }
  std::string_view layout_id() const noexcept override { return page_.layout_id(); }
  bool row_invariant() const noexcept override { return true; }
  const expert_shape& shape() const noexcept override { return shape_; }
  std::size_t page_bytes() const noexcept override { return page_.bytes(); }
  void pack_page(const expert_tensors& tensors, std::span<std::byte> page) const override {
    page_.pack(tensors, page);
  }
  std::size_t workspace_bytes(std::uint32_t rows, std::uint32_t k_in) const noexcept override;
  compute_status run(const expert_call& call) override;

 private:
  struct scratch;
  struct panel_range {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };

  std::uint32_t wave_rows(std::size_t entries) const noexcept;
  std::size_t lay_out(std::uint32_t rows, std::byte* base, scratch* out) const noexcept;
  std::uint32_t range_panels(const panel_strip& strip, bool alone) const noexcept;
  void compute(const wave& w, const scratch& s, return_mode mode) noexcept;

  template <class Store>
  void multiply(const panel_strip& strip, const wave_block& block, std::span<const wave_tile> tiles,
                const float* rows, std::size_t row_floats, panel_range range, float* sums,
                Store&& store) const noexcept;
  void run_fc1(const wave& w, const wave_block& block, const scratch& s, panel_range range,
               unsigned lane) const noexcept;
  void run_fc2(const wave& w, const wave_block& block, const scratch& s, return_mode mode,
               panel_range range, unsigned lane) const noexcept;

  expert_shape shape_;
  panel_page page_;
  const panel_kernels& kernels_;
  const tile_table& tiles_;
  compute_pool pool_;
};

}  // namespace moetier::kernels
