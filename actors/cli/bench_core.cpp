#include "actors/cli/bench_core.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>

#include <sched.h>
#include <unistd.h>

#include "schemas/base/assert.hpp"

namespace moetier::cli {
namespace {

constexpr std::size_t k_cold_bytes = std::size_t{64} << 20;
constexpr std::size_t k_ring_bytes_max = std::size_t{1} << 30;
constexpr std::size_t k_huge_bytes = std::size_t{2} << 20;
constexpr std::size_t k_copies_min = 4;

}  // namespace

// Twice what must lie between two uses: each copy is also read once on its own, half a turn before.
std::size_t cold_ring_bytes() {
  const long cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  const std::size_t last = cache > 0 ? static_cast<std::size_t>(cache) : 0;
  return std::min(2 * std::max(k_cold_bytes, 2 * last), k_ring_bytes_max);
}

double thread_us() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

double load_average() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : 0;
}

struct pinned_thread::mask {
  cpu_set_t set;
};

pinned_thread::pinned_thread() : before_(std::make_unique<mask>()) {
  CPU_ZERO(&before_->set);
  if (::sched_getaffinity(0, sizeof before_->set, &before_->set) != 0) return;
  for (int cpu = CPU_SETSIZE; cpu-- > 0;) {
    if (!CPU_ISSET(cpu, &before_->set)) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ::sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

pinned_thread::~pinned_thread() { ::sched_setaffinity(0, sizeof before_->set, &before_->set); }

unsigned pinned_thread::processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<unsigned>(CPU_COUNT(&set));
}

weight_ring::weight_ring(std::size_t bytes, std::size_t ring_bytes)
    : bytes_(bytes), copies_(std::max(k_copies_min, (ring_bytes + bytes - 1) / bytes)) {
  MOETIER_ASSERT(bytes > 0 && bytes % 64 == 0);
  const std::size_t whole = (bytes_ * copies_ + k_huge_bytes - 1) / k_huge_bytes * k_huge_bytes;
  memory_ = workers::host_page_memory::map(whole);
  if (memory_ == nullptr) throw std::bad_alloc();
}

std::span<std::byte> weight_ring::first() noexcept { return *memory_->stage(0, bytes_); }

void weight_ring::spread() {
  for (std::size_t i = 1; i < copies_; ++i)
    std::memcpy(memory_->stage(i * bytes_, bytes_)->data(), memory_->base(), bytes_);
}

const std::byte* weight_ring::copy(std::size_t i) const noexcept {
  return memory_->base() + i * bytes_;
}

spread_of spread_of_samples(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  return {.median = samples[samples.size() / 2],
          .min = samples.front(),
          .max = samples.back(),
          .count = samples.size()};
}

cold_sampler::cold_sampler(const kernels::cpu_ceiling_probes& probes, weight_ring& ring,
                           std::size_t bytes)
    : probes_(probes), ring_(ring), bytes_(bytes), rate_(ring.copies()) {
  for (std::size_t i = 0; i < rate_.size(); ++i) rate_[i] = read_gb_s(i, true);
}

double cold_sampler::fma_gflops() {
  constexpr int k_probes = 5;
  constexpr std::size_t k_rounds = 5000;
  double best = 0;
  for (int i = 0; i < k_probes; ++i) {
    const double began = thread_us();
    const double operations = probes_.fma(k_rounds);
    best = std::max(best, operations / (thread_us() - began) / 1e3);
  }
  return best;
}

double cold_sampler::read_gb_s(std::size_t copy, bool streams) {
  const std::size_t bytes = bytes_ / kernels::k_read_probe_bytes * kernels::k_read_probe_bytes;
  const double began = thread_us();
  (streams ? probes_.read_4 : probes_.read_1)(ring_.copy(copy), bytes);
  return static_cast<double>(bytes) / (thread_us() - began) / 1e3;
}

cold_sampler::sample cold_sampler::cold(double flops,
                                        const std::function<void(const std::byte*)>& call) {
  last_ = ring_.next();
  const std::size_t opposite = (last_ + ring_.copies() / 2) % ring_.copies();
  const double rate = rate_[last_];
  rate_[opposite] = read_gb_s(opposite, true);
  const double fma = fma_gflops();
  const double began = thread_us();
  call(ring_.copy(last_));
  const double us = thread_us() - began;
  const double reading = flops / static_cast<double>(bytes_) * rate;
  return {us, flops / us / 1e3 / std::min(fma, reading)};
}

cold_sampler::sample cold_sampler::warm(double flops,
                                        const std::function<void(const std::byte*)>& call) {
  const double fma = fma_gflops();
  const double began = thread_us();
  call(ring_.copy(last_));
  const double us = thread_us() - began;
  return {us, flops / us / 1e3 / fma};
}

}  // namespace moetier::cli
