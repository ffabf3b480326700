#pragma once
// An ExpertLayer whose device is the host: it reads a layer_call as a kernel would, when the queue
// comes to it, and computes by a CPU backend. Thread: owner.

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/backend.hpp"
#include "kernels/cuda/expert_layer.hpp"
#include "kernels/cuda/row_tile.hpp"
#include "schemas/base/limits.hpp"
#include "tests/workers/device/late_queue.hpp"

namespace moetier::workers {

class host_layer final : public kernels::cuda::ExpertLayer {
 public:
  explicit host_layer(std::unique_ptr<kernels::Backend> by) : by_(std::move(by)) {}

  std::string_view identity() const noexcept override { return "moetier.cuda.host.none"; }
  std::string_view layout_id() const noexcept override { return by_->layout_id(); }
  const kernels::expert_shape& shape() const noexcept override { return by_->shape(); }
  bool row_invariant() const noexcept override { return true; }
  std::size_t page_bytes() const noexcept override { return by_->page_bytes(); }
  void pack_page(const kernels::expert_tensors& tensors, std::span<std::byte> page) const override {
    by_->pack_page(tensors, page);
  }
  std::size_t workspace_bytes(const kernels::cuda::layer_capacity& c) const noexcept override {
    return 1000 + c.rows_cap + c.k_in + c.slots;
  }
  kernels::cuda::launch_status init_workspace(std::span<std::byte> workspace,
                                              void* stream) const override {
    launch(stream, [workspace] { std::fill(workspace.begin(), workspace.end(), std::byte{0}); });
    return {};
  }
  kernels::cuda::launch_status group(const kernels::cuda::layer_call&, void*) const override {
    return {};
  }
  kernels::cuda::launch_status compute(const kernels::cuda::layer_call& call,
                                       void* stream) const override {
    if (refuses) return {kernels::cuda::launch_status::k_refused};
    launch(stream, [this, call] { run(call); });
    return {};
  }

  bool refuses = false;
  kernels::cuda::device_failure fails = kernels::cuda::device_failure::none;

 private:
  static void launch(void* stream, std::function<void()> what) {
    static_cast<late_queue::launches*>(stream)->push_back(std::move(what));
  }

  void run(const kernels::cuda::layer_call& call) const {
    if (call.workspace[0] != std::byte{0}) std::abort();  // it was never initialised
    if (fails != kernels::cuda::device_failure::none) {
      *call.status = static_cast<std::uint32_t>(fails) | 7u << 8;
      return;
    }
    std::vector<kernels::expert_entry> entries;
    for (std::uint32_t r = 0; r < *call.rows_live; ++r) {
      for (std::uint32_t j = 0; j < call.k_in; ++j) {
        const std::int32_t slot = call.slot_ids[std::size_t{r} * call.k_in + j];
        if (slot < 0) continue;
        entries.push_back({.row = r,
                           .position = static_cast<std::uint16_t>(j),
                           .slot = static_cast<std::uint16_t>(slot),
                           .weight = call.weights[std::size_t{r} * call.k_in + j]});
      }
    }
    std::vector<kernels::expert_entry> scratch(entries.size());
    std::vector<std::uint32_t> counts(call.slots);
    kernels::group_entries(entries, scratch, counts);
    const kernels::row_region in{call.rows, call.row_pitch_bytes, *call.rows_live};
    const kernels::out_region out{call.out, call.out_pitch_bytes};
    std::vector<std::byte> workspace(by_->workspace_bytes(*call.rows_live, call.k_in) + 64);
    std::byte* const aligned =
        workspace.data() + (64 - reinterpret_cast<std::uintptr_t>(workspace.data()) % 64) % 64;
    const auto done = by_->run({.in = {&in, 1},
                                .out = {&out, 1},
                                .entries = entries,
                                .pages = {call.pages, call.slots},
                                .k_in = call.k_in,
                                .mode = call.mode,
                                .workspace = {aligned, workspace.size() - 64}});
    if (done != kernels::compute_status::ok) *call.status = 1;
  }

  std::unique_ptr<kernels::Backend> by_;
};

}  // namespace moetier::workers
