#pragma once
// A device_queue that is a CUDA stream. Work with a key runs as it is the first time, so that code
// is loaded outside a capture and one-off sizes cost none; the second time it is captured into a
// graph, which is replayed from then on. At most k_graphs_max are kept, others run as they are.
// Thread: as device_queue.

#include <array>
#include <memory>
#include <vector>

#include <cuda_runtime_api.h>

#include "schemas/base/time.hpp"
#include "workers/device/device_queue.hpp"
#include "workers/device/lost_once.hpp"

namespace moetier::workers {

class cuda_queue final : public device_queue {
 public:
  static constexpr std::size_t k_graphs_max = 64;

  // reason::device_lost.
  static expected<std::unique_ptr<cuda_queue>> create(int ordinal, duration_ns spin,
                                                      std::shared_ptr<lost_once> lost);
  ~cuda_queue() override;
  cuda_queue(const cuda_queue&) = delete;
  cuda_queue& operator=(const cuda_queue&) = delete;

  expected<device_bytes> allocate(std::size_t bytes) override;
  expected<device_bytes> allocate_pinned(std::size_t bytes) override;
  queue_status copy_in(std::byte* device, const std::byte* pinned,
                       std::size_t bytes) noexcept override;
  queue_status copy_out(std::byte* pinned, const std::byte* device,
                        std::size_t bytes) noexcept override;
  queue_status run(const stream_work& work) noexcept override;
  queue_status run_again(const work_key& key, const stream_work& work) noexcept override;
  queue_status wait() noexcept override;
  std::uint64_t mark() noexcept override;
  bool done(std::uint64_t mark) noexcept override;
  queue_status wait_for(std::uint64_t mark) noexcept override;
  void give_up(const std::string& why) noexcept override;
  error why_lost() const override { return lost_->why(); }

 private:
  struct recorded {
    work_key key;
    cudaGraphExec_t graph = nullptr;  // null = seen once, or not to be captured
    bool capture = true;
  };

  cuda_queue(int ordinal, duration_ns spin, std::shared_ptr<lost_once> lost);
  // False when the queue is lost; else this thread uses its device.
  bool enter() noexcept;
  // ok, or the queue is lost now: names what was called.
  queue_status check(cudaError_t code, const char* what) noexcept;
  cudaGraphExec_t capture(const stream_work& work) noexcept;
  queue_status wait_event(cudaEvent_t event) noexcept;

  int ordinal_;
  duration_ns spin_;
  std::shared_ptr<lost_once> lost_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t waited_ = nullptr;
  std::array<cudaEvent_t, k_marks_kept> marks_{};
  std::uint64_t marked_ = 0;
  std::vector<recorded> recorded_;
};

}  // namespace moetier::workers
