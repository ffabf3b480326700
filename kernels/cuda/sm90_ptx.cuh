#pragma once
// The instructions of sm_90 that C++ has no word for: mbarriers, bulk copies, fences, named
// barriers, register budgets, programmatic dependence, ordered accesses to other blocks' words.
// One thin function each; addresses of shared memory are 32-bit. PTX ISA 9.0.
//
// Waits on a block's own barriers have no deadline: what they wait for are this block's own copies
// and warps, which always arrive. Waits for other blocks go through wait_at_least(), which has one.

#include <cstdint>

#include <cuda_runtime.h>

#include "kernels/cuda/row_tile.hpp"

namespace moetier::kernels::cuda::ptx {

__device__ __forceinline__ std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

// ---- mbarriers

__device__ __forceinline__ void barrier_init(std::uint32_t barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}
__device__ __forceinline__ void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void arrive_expecting(std::uint32_t barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ bool passed(std::uint32_t barrier, std::uint32_t parity) {
  std::uint32_t done;
  asm volatile(
      "{\n.reg .pred p;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}
__device__ __forceinline__ void wait(std::uint32_t barrier, std::uint32_t parity) {
  while (!passed(barrier, parity)) {
  }
}

// ---- bulk copies

// How long lines of a copy should stay in L2.
__device__ __forceinline__ std::uint64_t policy_evict_first() {
  std::uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ __forceinline__ std::uint64_t policy_evict_last() {
  std::uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ __forceinline__ std::uint64_t policy_evict_normal() {
  std::uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// Requires: addresses at multiples of 16, bytes a multiple of 16.
__device__ __forceinline__ void copy_in(std::uint32_t to, const void* from, std::uint32_t bytes,
                                        std::uint32_t barrier, std::uint64_t policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
      " [%0], [%1], %2, [%3], %4;" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier), "l"(policy)
      : "memory");
}
__device__ __forceinline__ void copy_out(void* to, std::uint32_t from, std::uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from),
               "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void copy_out_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
__device__ __forceinline__ void copy_out_wait() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
// Their shared memory may be written again; the bytes may still be on their way.
__device__ __forceinline__ void copy_out_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// ---- stores with a say in how long L2 keeps them

__device__ __forceinline__ void store(void* to, std::uint32_t v, std::uint64_t policy) {
  asm volatile("st.global.L2::cache_hint.b32 [%0], %1, %2;" ::"l"(to), "r"(v), "l"(policy)
               : "memory");
}
__device__ __forceinline__ void store(void* to, uint2 v, std::uint64_t policy) {
  asm volatile("st.global.L2::cache_hint.v2.b32 [%0], {%1, %2}, %3;" ::"l"(to), "r"(v.x), "r"(v.y),
               "l"(policy)
               : "memory");
}
__device__ __forceinline__ void store(void* to, float4 v, std::uint64_t policy) {
  asm volatile("st.global.L2::cache_hint.v4.f32 [%0], {%1, %2, %3, %4}, %5;" ::"l"(to), "f"(v.x),
               "f"(v.y), "f"(v.z), "f"(v.w), "l"(policy)
               : "memory");
}

// ---- clusters

__device__ __forceinline__ std::uint32_t cluster_rank() {
  std::uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
// The same place in the shared memory of the cluster's block `rank`.
__device__ __forceinline__ std::uint32_t at_rank(std::uint32_t shared_address, std::uint32_t rank) {
  std::uint32_t address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(address)
               : "r"(shared_address), "r"(rank));
  return address;
}
// `barrier` as at_rank() gave it.
__device__ __forceinline__ void arrive_at_rank(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// Writes one word there and counts its 4 bytes at a barrier beside it.
__device__ __forceinline__ void send_to_rank(std::uint32_t to, std::uint32_t value,
                                             std::uint32_t barrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(to),
      "r"(value), "r"(barrier)
      : "memory");
}
// As copy_in(), to the same place in every block of `ranks` (bits), counted at each one's barrier.
__device__ __forceinline__ void copy_in_all(std::uint32_t to, const void* from, std::uint32_t bytes,
                                            std::uint32_t barrier, std::uint16_t ranks,
                                            std::uint64_t policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
      ".L2::cache_hint [%0], [%1], %2, [%3], %4, %5;" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier), "h"(ranks), "l"(policy)
      : "memory");
}
// All threads of the cluster; what any wrote before, all see after.
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

// ---- order

// Between ordinary accesses and those of the copy engine or the tensor cores.
__device__ __forceinline__ void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }
__device__ __forceinline__ void fence_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ std::uint32_t load_acquire(const std::uint32_t* p) {
  std::uint32_t v;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ void add_release(std::uint32_t* p, std::uint32_t v) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
__device__ __forceinline__ std::uint32_t add_acquire_release(std::uint32_t* p, std::uint32_t v) {
  std::uint32_t old;
  asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(p), "r"(v)
               : "memory");
  return old;
}
__device__ __forceinline__ void named_sync(std::uint32_t barrier, std::uint32_t threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
__device__ __forceinline__ void named_arrive(std::uint32_t barrier, std::uint32_t threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// ---- launches

// Everything the grid before wrote is visible. Returns at once without programmatic dependence.
__device__ __forceinline__ void wait_for_previous_grid() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
__device__ __forceinline__ void let_next_grid_start() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
template <std::uint32_t Registers>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <std::uint32_t Registers>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

// ---- waits for other blocks

__device__ __forceinline__ std::uint64_t now_ns() {
  std::uint64_t t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  return t;
}
// The first failure stays.
__device__ __forceinline__ void report(std::uint32_t* status, device_failure what,
                                       std::uint32_t detail) {
  atomicCAS(status, 0u, static_cast<std::uint32_t>(what) | detail << 8);
}
// Until *word >= want; false, with the status word set, once deadline_ns have passed.
__device__ __forceinline__ bool wait_at_least(const std::uint32_t* word, std::uint32_t want,
                                              std::uint64_t deadline_ns, std::uint32_t* status,
                                              std::uint32_t detail) {
  if (load_acquire(word) >= want) return true;
  const std::uint64_t start = now_ns();
  while (load_acquire(word) < want) {
    __nanosleep(40);
    if (now_ns() - start > deadline_ns) {
      report(status, device_failure::wait_expired, detail);
      return false;
    }
  }
  return true;
}

}  // namespace moetier::kernels::cuda::ptx
