#pragma once
// wgmma as functions: D[64, N] (+)= A[64, 32 B of K] · B[N, 32 B of K]^T, A and B in shared memory,
// K-major, 128-byte swizzle; D in registers, f32. E4M3: 32 columns of K an instruction, bf16: 16.
// Four of them take one 128-byte block of K: add 2 to both descriptors for each.
//
// Element i of D in thread t of the warpgroup: row 16 * (t / 32 % 4) + t % 32 / 4 + (i & 2 ? 8 :
// 0), column 8 * (i / 4) + 2 * (t % 4) + (i & 1).
//
// Between writing accumulators by other instructions and the first wgmma stands fence(); results
// may be read after commit() and wait<0>(). keep() before wait() pins accumulators, so that the
// compiler moves no use of them up.

#include <cstdint>

namespace moetier::kernels::cuda::wgmma {

// Requires: address at a multiple of 1024 plus a multiple of 32 within the first 128 bytes.
__device__ __forceinline__ std::uint64_t descriptor(std::uint32_t shared_address) {
  // Leading offset 1 (unused with this swizzle), stride between groups of 8 rows 1024 / 16, swizzle
  // 128 bytes.
  return static_cast<std::uint64_t>((shared_address & 0x3FFFFu) >> 4) | (1ull << 16) |
         (64ull << 32) | (1ull << 62);
}
// The same from its low word, of which alone addresses are part: 32-bit sums lead to the next
// block.
__device__ __forceinline__ std::uint64_t descriptor_from(std::uint32_t low) {
  return static_cast<std::uint64_t>(low) | (64ull << 32) | (1ull << 62);
}
// Of 8 KB: from the first 64 rows of a tile to the next.
inline constexpr std::uint64_t k_half_tile_step = 8192 / 16;
inline constexpr std::uint64_t k_slice_step = 32 / 16;

__device__ __forceinline__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int Pending>
__device__ __forceinline__ void wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}
template <int Count>
__device__ __forceinline__ void keep(float (&d)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

// The places of D in an asm statement, four by four.
#define MOETIER_D4(d, i) "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define MOETIER_D8(d, i) MOETIER_D4(d, i), MOETIER_D4(d, (i) + 4)
#define MOETIER_D16(d, i) MOETIER_D8(d, i), MOETIER_D8(d, (i) + 8)
#define MOETIER_D32(d, i) MOETIER_D16(d, i), MOETIER_D16(d, (i) + 16)
#define MOETIER_S4 "%0,%1,%2,%3"
#define MOETIER_S8 MOETIER_S4 ",%4,%5,%6,%7"
#define MOETIER_S12 MOETIER_S8 ",%8,%9,%10,%11"
#define MOETIER_S16 MOETIER_S12 ",%12,%13,%14,%15"
#define MOETIER_S20 MOETIER_S16 ",%16,%17,%18,%19"
#define MOETIER_S24 MOETIER_S20 ",%20,%21,%22,%23"
#define MOETIER_S28 MOETIER_S24 ",%24,%25,%26,%27"
#define MOETIER_S32 MOETIER_S28 ",%28,%29,%30,%31"
#define MOETIER_S64                                                                  \
  MOETIER_S32                                                                        \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51" \
  ",%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define MOETIER_S128                                                                      \
  MOETIER_S64                                                                             \
  ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84"  \
  ",%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104" \
  ",%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121" \
  ",%122,%123,%124,%125,%126,%127"

// One overload: NAME is the instruction's shape and types, TAIL what bf16 adds (K-major operands).
#define MOETIER_WGMMA(N, COUNT, SHAPE, TAIL, REGISTERS, PLACES, A, B, P)                        \
  __device__ __forceinline__ void multiply_##SHAPE(float(&d)[COUNT], std::uint64_t a,           \
                                                   std::uint64_t b, std::uint32_t accumulate) { \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #P                                        \
                 ", 0;\n"                                                                       \
                 "wgmma.mma_async.sync.aligned.m64n" #N MOETIER_TYPES_##SHAPE                   \
                 " {" REGISTERS "}, %" #A ", %" #B ", p, 1, 1" TAIL ";\n}"                      \
                 : PLACES                                                                       \
                 : "l"(a), "l"(b), "r"(accumulate));                                            \
  }
#define MOETIER_TYPES_e4m3 "k32.f32.e4m3.e4m3"
#define MOETIER_TYPES_bf16 "k16.f32.bf16.bf16"
#define MOETIER_WGMMA_BOTH(N, COUNT, REGISTERS, PLACES, A, B, P)             \
  MOETIER_WGMMA(N, COUNT, e4m3, "", REGISTERS, MOETIER_PASS PLACES, A, B, P) \
  MOETIER_WGMMA(N, COUNT, bf16, ", 0, 0", REGISTERS, MOETIER_PASS PLACES, A, B, P)
#define MOETIER_PASS(...) __VA_ARGS__

MOETIER_WGMMA_BOTH(8, 4, MOETIER_S4, (MOETIER_D4(d, 0)), 4, 5, 6)
MOETIER_WGMMA_BOTH(16, 8, MOETIER_S8, (MOETIER_D8(d, 0)), 8, 9, 10)
MOETIER_WGMMA_BOTH(24, 12, MOETIER_S12, (MOETIER_D8(d, 0), MOETIER_D4(d, 8)), 12, 13, 14)
MOETIER_WGMMA_BOTH(32, 16, MOETIER_S16, (MOETIER_D16(d, 0)), 16, 17, 18)
MOETIER_WGMMA_BOTH(40, 20, MOETIER_S20, (MOETIER_D16(d, 0), MOETIER_D4(d, 16)), 20, 21, 22)
MOETIER_WGMMA_BOTH(48, 24, MOETIER_S24, (MOETIER_D16(d, 0), MOETIER_D8(d, 16)), 24, 25, 26)
MOETIER_WGMMA_BOTH(56, 28, MOETIER_S28, (MOETIER_D16(d, 0), MOETIER_D8(d, 16), MOETIER_D4(d, 24)),
                   28, 29, 30)
MOETIER_WGMMA_BOTH(64, 32, MOETIER_S32, (MOETIER_D32(d, 0)), 32, 33, 34)
MOETIER_WGMMA_BOTH(128, 64, MOETIER_S64, (MOETIER_D32(d, 0), MOETIER_D32(d, 32)), 64, 65, 66)
MOETIER_WGMMA_BOTH(256, 128, MOETIER_S128,
                   (MOETIER_D32(d, 0), MOETIER_D32(d, 32), MOETIER_D32(d, 64), MOETIER_D32(d, 96)),
                   128, 129, 130)

#undef MOETIER_WGMMA_BOTH
#undef MOETIER_WGMMA
#undef MOETIER_PASS
#undef MOETIER_TYPES_e4m3
#undef MOETIER_TYPES_bf16
#undef MOETIER_D4
#undef MOETIER_D8
#undef MOETIER_D16
#undef MOETIER_D32
#undef MOETIER_S4
#undef MOETIER_S8
#undef MOETIER_S12
#undef MOETIER_S16
#undef MOETIER_S20
#undef MOETIER_S24
#undef MOETIER_S28
#undef MOETIER_S32
#undef MOETIER_S64
#undef MOETIER_S128

// Four instructions over one 128-byte block of K. `accumulate` = 0 starts the sums anew.
template <class Format, int Count>
__device__ __forceinline__ void multiply_block(float (&d)[Count], std::uint64_t a, std::uint64_t b,
                                               std::uint32_t accumulate) {
#pragma unroll
  for (int slice = 0; slice < 4; ++slice)
    Format::multiply(d, a + slice * k_slice_step, b + slice * k_slice_step,
                     slice > 0 ? 1u : accumulate);
}

// The number formats as types; what a kernel template asks of one is concept gemm_number.
struct e4m3 {
  static constexpr bool promoted = true;  // sums leave the tensor core every 128 of K
  template <int Count>
  static __device__ __forceinline__ void multiply(float (&d)[Count], std::uint64_t a,
                                                  std::uint64_t b, std::uint32_t accumulate) {
    multiply_e4m3(d, a, b, accumulate);
  }
};
struct bf16 {
  static constexpr bool promoted = false;
  template <int Count>
  static __device__ __forceinline__ void multiply(float (&d)[Count], std::uint64_t a,
                                                  std::uint64_t b, std::uint32_t accumulate) {
    multiply_bf16(d, a, b, accumulate);
  }
};
template <class T>
concept gemm_number = requires {
  T::promoted;
};

}  // namespace moetier::kernels::cuda::wgmma
