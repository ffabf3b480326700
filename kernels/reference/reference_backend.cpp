// The oracle behind the Backend interface: a row's y in double, rounded to f32 once.
#include <cmath>
#include <string>

#include <fmt/core.h>

#include "kernels/cpu_capabilities.hpp"
#include "kernels/entries.hpp"
#include "kernels/limits.hpp"
#include "kernels/reference/canonical_page.hpp"
#include "kernels/reference/reference_expert.hpp"

namespace moetier::kernels {
namespace {

class reference_backend final : public Backend {
 public:
  explicit reference_backend(const expert_shape& shape)
      : shape_(shape),
        page_(shape),
        identity_(fmt::format("{}{}", k_reference_capabilities.identity_prefix,
                              quant_name(shape.format.quant))),
        layout_id_(layout_name("canonical", dtype_name(shape.format.stored), shape)) {}

  std::string_view identity() const noexcept override { return identity_; }
  std::string_view layout_id() const noexcept override { return layout_id_; }
  bool row_invariant() const noexcept override { return true; }
  const expert_shape& shape() const noexcept override { return shape_; }
  std::size_t page_bytes() const noexcept override { return page_.bytes(); }
  void pack_page(const expert_tensors& tensors, std::span<std::byte> page) const override {
    page_.pack(tensors, page);
  }
  std::size_t workspace_bytes(std::uint32_t rows, std::uint32_t k_in) const noexcept override {
    if (rows == 0 || k_in == 0) return 0;
    const std::size_t doubles = std::size_t{shape_.hidden_size} + shape_.intermediate_size;
    return (doubles * sizeof(double) + k_page_alignment - 1) / k_page_alignment * k_page_alignment;
  }

  compute_status run(const expert_call& call) override {
    const auto rows = static_cast<std::uint32_t>(live_rows(call));
    if (call.workspace.size() < workspace_bytes(rows, call.k_in))
      return compute_status::workspace_short;
    if (call.lora != nullptr) return compute_status::lora_unsupported;
    if (const compute_status checked = check_entries(call); checked != compute_status::ok)
      return checked;
    const std::size_t hidden = shape_.hidden_size;
    if (call.mode == return_mode::partial) clear_rows(call, hidden);
    const std::span y(reinterpret_cast<double*>(call.workspace.data()), hidden);
    const std::span activated(y.data() + hidden, shape_.intermediate_size);
    for (const expert_entry& entry : call.entries) {
      reference_row(shape_, page_.tensors(call.pages[entry.slot]),
                    std::span(input_of(call, entry), hidden), activated, y);
      float* out = output_of(call, entry);
      for (std::size_t n = 0; n < hidden; ++n) {
        const auto rounded = static_cast<float>(y[n]);
        out[n] =
            call.mode == return_mode::partial ? std::fma(entry.weight, rounded, out[n]) : rounded;
      }
    }
    return compute_status::ok;
  }

 private:
  expert_shape shape_;
  canonical_page page_;
  std::string identity_;
  std::string layout_id_;
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend(const expert_shape& shape) {
  return std::make_unique<reference_backend>(shape);
}

}  // namespace moetier::kernels
