#pragma once
// One core as a bench finds it: a thread that stays on it, its ceilings beside each sample, copies
// of weights that leave the caches before they are used again, and how busy the machine is.
// Thread: owner.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cpu/cpu_ceilings.hpp"
#include "workers/store/page_memory.hpp"

namespace moetier::cli {

// Time that this thread has computed: others on a shared machine take turns, and their turns are
// not ours. Waiting for memory counts.
double thread_us();

// Figures of a machine that is busier than this at the start say little.
inline constexpr double k_load_quiet = 1.5;
double load_average();

// While it lives, the calling thread stays on one of its processors, the last.
class pinned_thread final {
 public:
  pinned_thread();
  ~pinned_thread();
  pinned_thread(const pinned_thread&) = delete;
  pinned_thread& operator=(const pinned_thread&) = delete;

  static unsigned processors();  // that the calling thread may use

 private:
  struct mask;
  std::unique_ptr<mask> before_;
};

// What all copies of a ring need, so that one has left every cache before it is used again: two
// turns of more than 64 MiB and of twice the last cache.
std::size_t cold_ring_bytes();

// Equal copies in huge pages, used in turn.
class weight_ring final {
 public:
  // All copies together are `ring_bytes` or a little more, and at least four. Requires: bytes is a
  // multiple of 64. May throw std::bad_alloc.
  weight_ring(std::size_t bytes, std::size_t ring_bytes);

  // The first copy, to be written before spread() makes the others.
  std::span<std::byte> first() noexcept;
  void spread();

  std::size_t copies() const noexcept { return copies_; }
  const std::byte* copy(std::size_t i) const noexcept;
  // One after another.
  std::size_t next() noexcept { return next_ = (next_ + 1) % copies_; }

 private:
  std::size_t bytes_;
  std::size_t copies_;
  std::unique_ptr<workers::host_page_memory> memory_;
  std::size_t next_ = 0;
};

struct spread_of {
  double median = 0;
  double min = 0;
  double max = 0;
  std::size_t count = 0;
};
spread_of spread_of_samples(std::vector<double> samples);

// Samples of one call over a ring, each beside ceilings taken a moment before: the fma rate of this
// core, and the rate at which it reads that very copy as four streams, when it was last cold.
class cold_sampler final {
 public:
  // Requires: the ring's copies are written.
  cold_sampler(const kernels::cpu_ceiling_probes& probes, weight_ring& ring, std::size_t bytes);

  // One figure of the core's own, GFLOP/s and GB/s.
  double fma_gflops();
  double read_gb_s(std::size_t copy, bool streams);

  struct sample {
    double us = 0;
    double of_ceiling = 0;  // rate / min(fma rate, rate at which the weights can be read)
  };
  // call(weights) does `flops` operations over one copy.
  sample cold(double flops, const std::function<void(const std::byte*)>& call);
  // us and the share of the fma rate; weights of the copy used last.
  sample warm(double flops, const std::function<void(const std::byte*)>& call);

 private:
  const kernels::cpu_ceiling_probes& probes_;
  weight_ring& ring_;
  std::size_t bytes_;
  std::vector<double> rate_;  // GB/s of each copy when it was last read cold
  std::size_t last_ = 0;
};

}  // namespace moetier::cli
