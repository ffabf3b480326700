#pragma once
// The bench's device: one stream, memory on it, CUDA graphs and their times. The first CUDA error
// sticks: everything after it does nothing, and failed() tells it once, at the end of a
// measurement, so that the steps of a measurement read as a list. CUDA's types stay in the source.
//
// Thread: owner (blocks until the device is done; not for engines).

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/launch.hpp"
#include "schemas/base/error.hpp"

namespace moetier::kernels::cuda::bench {

struct bench_device_facts {
  std::string name;
  std::string driver;
  std::uint32_t architecture = 0;  // 90 for sm_90
  std::uint64_t cache_bytes = 0;   // L2
  std::uint64_t memory_bytes = 0;
  device_size size{};
};

// Times of one thing in us, over its repeats.
struct time_spread {
  double median = 0;
  double min = 0;
  double max = 0;
  std::uint32_t n = 0;
};
time_spread spread_of(std::vector<double> times_us);

// One kernel of a list of launches, and what it takes alone, on inputs that are there already.
struct launch_stage {
  std::string kernel;
  double us = 0;
};
struct launch_stages {
  std::vector<launch_stage> each;
  std::string note;  // why there are none
};

class bench_stream;

// Device memory, given back with it.
class device_block final {
 public:
  device_block() = default;
  ~device_block();
  device_block(device_block&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  device_block& operator=(device_block&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  std::byte* data() const noexcept { return data_; }
  template <class T>
  T* as() const noexcept {
    return reinterpret_cast<T*>(data_);
  }
  std::span<std::byte> span() const noexcept { return {data_, bytes_}; }

 private:
  friend class bench_stream;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// A captured list of launches.
class bench_graph final {
 public:
  bench_graph() = default;
  ~bench_graph();
  bench_graph(bench_graph&& other) noexcept
      : executable_(std::exchange(other.executable_, nullptr)) {}
  bench_graph& operator=(bench_graph&& other) noexcept {
    std::swap(executable_, other.executable_);
    return *this;
  }

 private:
  friend class bench_stream;
  void* executable_ = nullptr;
};

class bench_stream final {
 public:
  // Why there is nothing to measure on: no device, or not one of architecture 90.
  static expected<std::unique_ptr<bench_stream>> open();
  ~bench_stream();
  bench_stream(const bench_stream&) = delete;
  bench_stream& operator=(const bench_stream&) = delete;

  const bench_device_facts& facts() const noexcept { return facts_; }
  void* stream() const noexcept { return stream_; }
  std::uint64_t free_bytes() const noexcept;

  device_block allocate(std::size_t bytes);
  void upload(std::byte* to, std::span<const std::byte> from);
  template <class T>
  void upload(const device_block& to, const std::vector<T>& from) {
    upload(to.data(), std::as_bytes(std::span(from)));
  }
  template <class T>
  std::vector<T> download(const T* from, std::size_t count) {
    std::vector<T> to(count);
    download_bytes(std::as_writable_bytes(std::span(to)), from);
    return to;
  }
  void fill(std::span<std::byte> block, std::uint8_t byte);
  void copy(std::byte* to, const std::byte* from, std::size_t bytes);

  // Takes what a launcher returned.
  void take(launch_status status);
  void wait();
  bool ok() const noexcept { return error_ == 0; }
  // What went wrong first. Requires: !ok().
  error failed(const char* what) const;

  // Runs `enqueue` once as it is, then captures it. Requires: it only enqueues on stream().
  bench_graph capture(const std::function<void()>& enqueue);
  void replay(const bench_graph& graph);
  // us between two marks around a replay that follows another one without a gap.
  double replay_us(const bench_graph& graph);
  // The kernels of one part of `enqueue`, which enqueues `parts` equal ones, each alone: replays
  // of the whole graph with all other nodes disabled. What it cannot do is no failure of the
  // device.
  launch_stages stages_of(const std::function<void()>& enqueue, std::uint32_t parts);
  // us between two marks around what `enqueue` enqueues.
  double enqueue_us(const std::function<void()>& enqueue);

 private:
  bench_stream() = default;
  void take_error(int error) noexcept;
  void* capture_graph(const std::function<void()>& enqueue);
  bench_graph instantiate(void* graph);
  launch_stages time_stages(void* graph, std::uint32_t parts);
  void download_bytes(std::span<std::byte> to, const void* from);

  bench_device_facts facts_;
  void* stream_ = nullptr;
  void* begin_ = nullptr;
  void* end_ = nullptr;
  int error_ = 0;
};

}  // namespace moetier::kernels::cuda::bench
