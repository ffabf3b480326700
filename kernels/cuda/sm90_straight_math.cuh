#pragma once
// A math warpgroup of the straight kernel, from its first unit to its last: choose its share of the
// unit, sum over K, write the outcome.
//
// Thread: one math warpgroup.

#include "kernels/cuda/sm90_straight_intermediate.cuh"
#include "kernels/cuda/sm90_straight_output.cuh"

namespace moetier::kernels::cuda::straight {

template <wgmma::gemm_number Number>
struct math_warpgroup {
  const expert_gemm_args& args;
  block_shared<Number>& shared;
  std::uint32_t number;  // 0 or 1
  thread_place at;
  stage_reader<Number> reader;
  std::uint32_t staged = 0;  // outcomes of FC1 that went through staging

  __device__ __forceinline__ math_warpgroup(const expert_gemm_args& a, block_shared<Number>& s,
                                            std::uint32_t warpgroup, const thread_place& place)
      : args(a), shared(s), number(warpgroup), at(place), reader(s, place.lane) {}

  __device__ __forceinline__ share share_of(const unit& u) const {
    const bool two_strips = u.strips == k_unit_strips;
    return u.rows > 64 ? share{number * 64, 0, two_strips} : share{0, number, false};
  }

  // Half a block apart the warpgroups stay out of each other's way. Only where a unit has more
  // blocks than there are stages: then neither gets a whole unit ahead, and their meetings pair up.
  static __device__ __forceinline__ bool staggers(const unit& u) {
    return Number::promoted && u.kind != unit_kind::idle && u.blocks > k_straight_stages;
  }

  // Until what this warp wrote last of FC1 has left staging.
  __device__ __forceinline__ void wait_for_staging() const {
    ptx::wait(ptx::shared_address(&shared.staging_free), (staged & 1u) ^ 1u);
  }

  template <int Strips>
  __device__ __forceinline__ void multiply(sums& totals, const unit& u, const share& part,
                                           const scale_pairs* scales) {
    const bool teller = at.lane < k_straight_cluster;
    if constexpr (Number::promoted) {
      const std::uint32_t row_scales = reader.stages + k_unit_strips * k_tile_bytes +
                                       u.groups * k_group_code_bytes +
                                       (part.first_row + at.row()) * 4;
      sum_promoted<Strips>(totals, reader, part, u.blocks, scales, row_scales, teller,
                           number == 0 && staggers(u));
    } else if constexpr (Strips == 2) {
      sum_in_place<2>(totals, reader, part, u.blocks, teller);
    } else {
      sum_in_place<1>(first_strip(totals), reader, part, u.blocks, teller);
    }
  }

  __device__ __forceinline__ void compute(const unit& u, std::uint32_t q, const share& part) {
    sums totals;
#pragma unroll
    for (float& sum : totals) sum = 0.0F;
    if (part.both) {
      multiply<2>(totals, u, part, shared.scales[q]);
    } else {
      multiply<1>(totals, u, part, shared.scales[q]);
    }
    wait_for_staging();
    if (u.kind == unit_kind::fc1) {
      stage_intermediates<Number>(shared, u, totals, part, at);
    } else {
      write_output(args, u, {shared.entries[q], shared.row_weights[q]}, totals, part, at,
                   shared.staging + (number * 4 + at.warp) * 2048);
    }
  }

  __device__ __forceinline__ void run() {
    for (unit_queue queue;; ++queue.taken) {
      const unit& u = queue.next(shared);
      const unit_kind kind = u.kind;
      if (kind == unit_kind::none) return;
      if (number == 1 && staggers(u)) ptx::named_sync(k_stagger_barrier, 256);
      const share part = share_of(u);
      if (part.strip < u.strips) {
        compute(u, queue.place(), part);
      } else {
        skip_stages(reader, u.blocks, at.lane < k_straight_cluster);
        wait_for_staging();  // or this warp might count twice for one outcome
      }
      if (kind == unit_kind::fc1) {
        ++staged;
        ptx::fence_async_shared();
      }
      __syncwarp();
      if (at.lane == 0) {
        if (kind == unit_kind::fc1) ptx::arrive(ptx::shared_address(&shared.staged));
        queue.give_back(shared);
      }
    }
  }
};

}  // namespace moetier::kernels::cuda::straight
