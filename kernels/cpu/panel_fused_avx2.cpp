// Built for AVX2, FMA and F16C; everything but the table has internal linkage (see CMakeLists.txt).
//
// A block of a few steps of K is decoded into memory, then multiplied from there. Blocks are short
// enough that the processor decodes the next one while its fma units are still busy with the last;
// with 256 steps instead of 16, four rows take the sum of both times. One or two rows have little
// to hide behind, and longer blocks save them calls.
#include <immintrin.h>

#include "kernels/cpu/panel_decode_avx2.hpp"
#include "kernels/cpu/panel_kernels.hpp"
#include "kernels/cpu/panel_tile_avx2.hpp"

namespace moetier::kernels {
namespace {

constexpr std::size_t k_ahead_bytes = 2048;
constexpr std::size_t block_steps(unsigned rows) { return rows <= 2 ? 64 : 16; }

// A format: its codes, its scales, steps of K that share one (0 = all), whether s2 follows.
template <class Codes, class Scales, std::size_t Group, bool Second>
struct format {
  using codes = Codes;
  static constexpr std::size_t k_group = Group;

  static pair_of_lanes factor(const std::byte* scales, std::size_t k) {
    return Codes::factor(Scales::at(scales, Group == 0 ? 0 : k / (Group == 0 ? 1 : Group)));
  }
  [[gnu::always_inline]] static void decode(const std::byte* at, const std::byte* scales,
                                            const pair_of_lanes& factor, float* out) {
    Codes::decode(
        at, factor,
        [scales](const pair_of_lanes& w) {
          if constexpr (Second) return times(w, f32_scales::at(scales, 0));
          return w;
        },
        out);
  }
};

// Steps [k, k + steps) of one panel -> out, and the rest of a last pair of codes with them. Blocks
// begin where a group begins, or lie inside one.
template <class Format>
[[gnu::noinline]] void decode_block(const std::byte* at, const std::byte* scales, std::size_t k,
                                    std::size_t steps, float* out) {
  using codes = typename Format::codes;
  at += k * codes::k_step_bytes;
  for (const std::size_t end = k + steps; k < end;) {
    const std::size_t next =
        Format::k_group == 0 || k + Format::k_group > end ? end : k + Format::k_group;
    const pair_of_lanes factor = Format::factor(scales, k);
    for (; k < next; k += codes::k_steps) {
      _mm_prefetch(reinterpret_cast<const char*>(at + k_ahead_bytes), _MM_HINT_T0);
      Format::decode(at, scales, factor, out);
      at += codes::k_steps * codes::k_step_bytes;
      out += codes::k_steps * k_panel_columns;
    }
    k = next;
  }
}

template <class Format, unsigned Rows, unsigned Streams>
void fused(const fused_args& args) {
  constexpr std::size_t k_block_steps = block_steps(Rows);
  const std::size_t end = args.first + args.tile.depth;
  tile_args part = args.tile;
  part.panel = reinterpret_cast<const std::byte*>(args.out);
  part.stream_bytes = args.out_steps * k_panel_columns * sizeof(float);
  for (std::size_t k = args.first; k < end; k += k_block_steps) {
    part.depth = k + k_block_steps < end ? k_block_steps : end - k;
    for (unsigned s = 0; s < Streams; ++s) {
      const std::byte* panel = args.tile.panel + s * args.tile.stream_bytes;
      decode_block<Format>(panel, panel + args.scales_bytes, k, part.depth,
                           args.out + (s * args.out_steps + k - args.first) * k_panel_columns);
    }
    tile<f32_weights, false, Rows, Streams>(part);
    part.resume = true;
    part.rows += k_block_steps * Rows;
    part.panel += k_block_steps * k_panel_columns * sizeof(float);
  }
}

// Whether a scale of these steps is too large to carry the factor of e4m3_codes<false>.
template <class Scales, std::size_t Group>
bool any_large(const fused_args& args, unsigned streams) {
  const __m256 large = _mm256_set1_ps(0x1p119F);
  __m256 any = _mm256_setzero_ps();
  for (unsigned s = 0; s < streams; ++s) {
    const std::byte* scales = args.tile.panel + s * args.tile.stream_bytes + args.scales_bytes;
    constexpr std::size_t k_group = Group == 0 ? k_expand_steps_min : Group;
    for (std::size_t k = args.first; k < args.first + args.tile.depth; k += k_group) {
      const pair_of_lanes scale = Scales::at(scales, Group == 0 ? 0 : k / k_group);
      any = _mm256_or_ps(any, _mm256_or_ps(_mm256_cmp_ps(scale.low, large, _CMP_GE_OQ),
                                           _mm256_cmp_ps(scale.high, large, _CMP_GE_OQ)));
    }
  }
  return _mm256_movemask_ps(any) != 0;
}

template <class Scales, std::size_t Group>
struct e4m3_format {
  template <unsigned Rows, unsigned Streams>
  static void run(const fused_args& args) {
    if (any_large<Scales, Group>(args, Streams)) {
      fused<format<e4m3_codes<true>, Scales, Group, false>, Rows, Streams>(args);
    } else {
      fused<format<e4m3_codes<false>, Scales, Group, false>, Rows, Streams>(args);
    }
  }
};

template <class Table, class Scales, std::size_t Group, bool Second>
struct nibble_format {
  template <unsigned Rows, unsigned Streams>
  static void run(const fused_args& args) {
    fused<format<nibble_codes<Table>, Scales, Group, Second>, Rows, Streams>(args);
  }
};

template <class Form>
constexpr fused_table table_of_form() {
  fused_table table;
  table.of[1][1] = Form::template run<1, 1>;
  table.of[1][2] = Form::template run<1, 2>;
  table.of[1][4] = Form::template run<1, 4>;
  table.of[2][1] = Form::template run<2, 1>;
  table.of[2][2] = Form::template run<2, 2>;
  table.of[3][1] = Form::template run<3, 1>;
  table.of[3][2] = Form::template run<3, 2>;
  table.of[4][1] = Form::template run<4, 1>;
  table.of[5][1] = Form::template run<5, 1>;
  table.of[6][1] = Form::template run<6, 1>;
  return table;
}

}  // namespace

constinit const fused_table k_panel_fused_avx2[k_quant_kinds] = {
    {},
    table_of_form<e4m3_format<f32_scales, 0>>(),                          // fp8_tensor
    table_of_form<e4m3_format<f32_scales, 128>>(),                        // fp8_block
    table_of_form<e4m3_format<ue8m0_scales, 32>>(),                       // mxfp8
    table_of_form<nibble_format<e2m1_table, ue8m0_scales, 32, false>>(),  // mxfp4
    table_of_form<nibble_format<e2m1_table, e4m3_scales, 16, true>>(),    // nvfp4
    table_of_form<nibble_format<int4_table, bf16_scales, 128, false>>(),  // int4_g128
};

}  // namespace moetier::kernels
