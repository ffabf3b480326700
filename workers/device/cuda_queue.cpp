#include "workers/device/cuda_queue.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include "schemas/base/assert.hpp"
#include "workers/device/device_error.hpp"

namespace moetier::workers {
namespace {

static_assert(device_error_of(cudaSuccess) == device_error::none);
static_assert(device_error_of(cudaErrorMemoryAllocation) == device_error::out_of_memory);
static_assert(device_error_of(cudaErrorInvalidValue) == device_error::refused);
static_assert(device_error_of(cudaErrorInvalidConfiguration) == device_error::refused);
static_assert(device_error_of(cudaErrorNoKernelImageForDevice) == device_error::refused);
static_assert(device_error_of(cudaErrorLaunchOutOfResources) == device_error::refused);
static_assert(device_error_of(cudaErrorCooperativeLaunchTooLarge) == device_error::refused);
static_assert(device_error_of(cudaErrorStreamCaptureUnsupported) == device_error::refused);
static_assert(device_error_of(cudaErrorStreamCaptureWrongThread) == device_error::refused);
static_assert(device_error_of(cudaErrorNoDevice) == device_error::absent);
static_assert(device_error_of(cudaErrorInsufficientDriver) == device_error::absent);
static_assert(device_error_of(cudaErrorIllegalAddress) == device_error::context_dead);
static_assert(device_error_of(cudaErrorLaunchFailure) == device_error::context_dead);
static_assert(device_error_of(cudaErrorECCUncorrectable) == device_error::context_dead);
static_assert(device_error_of(cudaErrorAssert) == device_error::context_dead);

// A dead context's memory cannot be freed and goes with the process.
void free_device(std::byte* p) { (void)cudaFree(p); }
void free_pinned(std::byte* p) { (void)cudaFreeHost(p); }

class cuda_queue final : public device_queue {
 public:
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
  bool reaches(std::span<const std::byte> memory) noexcept override;
  queue_status copy_rows(const row_copy& rows) noexcept override;
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

expected<std::unique_ptr<cuda_queue>> cuda_queue::create(int ordinal, duration_ns spin,
                                                         std::shared_ptr<lost_once> lost) {
  std::unique_ptr<cuda_queue> q(new cuda_queue(ordinal, spin, std::move(lost)));
  if (!q->enter()) return unexpected_error(q->why_lost());
  bool made = q->check(cudaStreamCreateWithFlags(&q->stream_, cudaStreamNonBlocking),
                       "making a stream") == queue_status::ok;
  const auto make_event = [&](cudaEvent_t& event) {
    made = made && q->check(cudaEventCreateWithFlags(
                                &event, cudaEventDisableTiming | cudaEventBlockingSync),
                            "making an event") == queue_status::ok;
  };
  make_event(q->waited_);
  for (cudaEvent_t& event : q->marks_) make_event(event);
  if (!made) return unexpected_error(q->why_lost());
  return q;
}

cuda_queue::cuda_queue(int ordinal, duration_ns spin, std::shared_ptr<lost_once> lost)
    : ordinal_(ordinal), spin_(spin), lost_(std::move(lost)) {
  recorded_.reserve(k_graphs_max);
}

cuda_queue::~cuda_queue() {
  if (!enter()) return;  // what a dead context holds goes with the process
  (void)cudaStreamSynchronize(stream_);
  for (const recorded& r : recorded_) {
    if (r.graph != nullptr) (void)cudaGraphExecDestroy(r.graph);
  }
  for (const cudaEvent_t event : marks_) (void)cudaEventDestroy(event);
  (void)cudaEventDestroy(waited_);
  (void)cudaStreamDestroy(stream_);
}

bool cuda_queue::enter() noexcept {
  if (lost_->is_lost()) return false;
  return check(cudaSetDevice(ordinal_), "choosing the device") == queue_status::ok;
}

queue_status cuda_queue::check(cudaError_t code, const char* what) noexcept {
  if (code == cudaSuccess) return queue_status::ok;
  give_up(fmt::format("{}: {} ({})", what, cudaGetErrorName(code), cudaGetErrorString(code)));
  return queue_status::lost;
}

void cuda_queue::give_up(const std::string& why) noexcept { lost_->tell(why); }

expected<device_bytes> cuda_queue::allocate(std::size_t bytes) {
  void* p = nullptr;
  if (!enter()) return unexpected_error(why_lost());
  const cudaError_t code = cudaMalloc(&p, bytes);
  if (device_error_of(code) == device_error::out_of_memory) {
    (void)cudaGetLastError();  // a refusal is no failure of what comes next
    return fail(reason::memory_insufficient, "device memory", bytes, "fewer");
  }
  if (check(code, "allocating device memory") != queue_status::ok)
    return unexpected_error(why_lost());
  return device_bytes(static_cast<std::byte*>(p), free_device);
}

expected<device_bytes> cuda_queue::allocate_pinned(std::size_t bytes) {
  void* p = nullptr;
  if (!enter()) return unexpected_error(why_lost());
  const cudaError_t code = cudaHostAlloc(&p, bytes, cudaHostAllocDefault);
  if (device_error_of(code) == device_error::out_of_memory) {
    (void)cudaGetLastError();
    return fail(reason::memory_insufficient, "pinned host memory", bytes, "fewer");
  }
  if (check(code, "allocating pinned memory") != queue_status::ok)
    return unexpected_error(why_lost());
  return device_bytes(static_cast<std::byte*>(p), free_pinned);
}

queue_status cuda_queue::copy_in(std::byte* device, const std::byte* pinned,
                                 std::size_t bytes) noexcept {
  if (!enter()) return queue_status::lost;
  return check(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, stream_),
               "copying to the device");
}

queue_status cuda_queue::copy_out(std::byte* pinned, const std::byte* device,
                                  std::size_t bytes) noexcept {
  if (!enter()) return queue_status::lost;
  return check(cudaMemcpyAsync(pinned, device, bytes, cudaMemcpyDeviceToHost, stream_),
               "copying from the device");
}

bool cuda_queue::reaches(std::span<const std::byte> memory) noexcept {
  if (memory.empty() || !enter()) return false;
  const auto reached = [](const std::byte* p) {
    cudaPointerAttributes seen{};
    if (cudaPointerGetAttributes(&seen, p) != cudaSuccess) {
      (void)cudaGetLastError();
      return false;
    }
    return seen.type == cudaMemoryTypeHost || seen.type == cudaMemoryTypeDevice;
  };
  return reached(&memory.front()) && reached(&memory.back());
}

queue_status cuda_queue::copy_rows(const row_copy& r) noexcept {
  if (!enter()) return queue_status::lost;
  return check(cudaMemcpy2DAsync(r.to, r.to_pitch_bytes, r.from, r.from_pitch_bytes, r.row_bytes,
                                 r.rows, cudaMemcpyDefault, stream_),
               "copying rows");
}

queue_status cuda_queue::run(const stream_work& work) noexcept {
  if (!enter()) return queue_status::lost;
  const kernels::cuda::launch_status done = work(stream_);
  if (done.error == kernels::cuda::launch_status::k_refused) {
    give_up("a launch was refused: its arguments do not fit its plan");
    return queue_status::lost;
  }
  return check(static_cast<cudaError_t>(done.error), "launching kernels");
}

queue_status cuda_queue::run_again(const work_key& key, const stream_work& work) noexcept {
  const auto at = std::find_if(recorded_.begin(), recorded_.end(),
                               [&](const recorded& r) { return r.key == key; });
  if (at == recorded_.end()) {
    if (recorded_.size() < k_graphs_max) recorded_.push_back({key, nullptr, true});
    return run(work);
  }
  if (at->graph == nullptr && at->capture) {
    if (!enter()) return queue_status::lost;
    at->graph = capture(work);
    at->capture = at->graph != nullptr;  // what cannot be captured runs as it is, for good
  }
  if (at->graph == nullptr) return run(work);
  if (!enter()) return queue_status::lost;
  return check(cudaGraphLaunch(at->graph, stream_), "replaying kernels");
}

// The loader's thread allocates and copies meanwhile: only this thread's calls are watched.
cudaGraphExec_t cuda_queue::capture(const stream_work& work) noexcept {
  if (cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal) != cudaSuccess) {
    (void)cudaGetLastError();
    return nullptr;
  }
  const bool enqueued = work(stream_).ok();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t made = nullptr;
  const bool ended = cudaStreamEndCapture(stream_, &graph) == cudaSuccess && graph != nullptr;
  if (!ended || !enqueued || cudaGraphInstantiate(&made, graph, 0) != cudaSuccess) made = nullptr;
  if (graph != nullptr) (void)cudaGraphDestroy(graph);
  if (made == nullptr) (void)cudaGetLastError();
  return made;
}

queue_status cuda_queue::wait() noexcept {
  if (!enter()) return queue_status::lost;
  if (check(cudaEventRecord(waited_, stream_), "marking the end") != queue_status::ok)
    return queue_status::lost;
  return wait_event(waited_);
}

queue_status cuda_queue::wait_event(cudaEvent_t event) noexcept {
  const time_ns until = monotonic_now() + spin_;
  do {
    const cudaError_t code = cudaEventQuery(event);
    if (code != cudaErrorNotReady) return check(code, "waiting for the device");
  } while (monotonic_now() < until);
  return check(cudaEventSynchronize(event), "waiting for the device");
}

std::uint64_t cuda_queue::mark() noexcept {
  ++marked_;
  if (enter())
    (void)check(cudaEventRecord(marks_[marked_ % k_marks_kept], stream_), "marking a copy");
  return marked_;
}

bool cuda_queue::done(std::uint64_t mark) noexcept {
  MOETIER_ASSERT(mark >= 1 && mark <= marked_ && marked_ - mark < k_marks_kept);
  return enter() && cudaEventQuery(marks_[mark % k_marks_kept]) == cudaSuccess;
}

queue_status cuda_queue::wait_for(std::uint64_t mark) noexcept {
  MOETIER_ASSERT(mark >= 1 && mark <= marked_ && marked_ - mark < k_marks_kept);
  if (!enter()) return queue_status::lost;
  return wait_event(marks_[mark % k_marks_kept]);
}

}  // namespace

expected<std::unique_ptr<device_queue>> make_cuda_queue(std::uint32_t ordinal, duration_ns spin,
                                                        std::shared_ptr<lost_once> lost) {
  auto made = cuda_queue::create(static_cast<int>(ordinal), spin, std::move(lost));
  if (!made) return unexpected_error(std::move(made.error()));
  return std::unique_ptr<device_queue>(std::move(*made));
}

}  // namespace moetier::workers
