#pragma once
// Backend: pure compute of routed experts. It knows rows, local slots and the weights in pages;
// never ranks, wires or EPLB. One object serves one device and one weight shape; it is resolved
// once for all workers of a tier.
//
// Input is a list of rows by reference (regions) plus entries sorted by local slot, made by
// group_entries() below. A slot without entries costs nothing. Zero rows are legal and return at
// once. Nothing is allocated inside run(): all scratch is in `workspace`, whose size
// workspace_bytes() gives.
//
// Weights lie in pages, pre-tiled by the backend's own pack_page(); a page holds one expert of one
// layer: FC1 (gate and up, [2I, H]) then FC2 (down, [H, I]), in the backend's layout, named by
// layout_id().
//
// Arithmetic (combine in partial mode): p = +0; over a row's own entries in ascending (local slot,
// position): p = fma(w, y, p) in f32. In exact mode the unweighted y of each entry is written
// apart.
//
// Thread: engine (one call at a time per workspace); const queries: any.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/base/dtype.hpp"
#include "schemas/base/error.hpp"
#include "schemas/base/time.hpp"
#include "schemas/model/model_description.hpp"

namespace moetier::kernels {

enum class return_mode : std::uint8_t { partial = 0, exact = 1 };

// What one backend object is built for: the shape and format of one expert and what runs between
// FC1 and FC2. The activation's constants are no part of it: they lie in the page, one set an
// expert.
struct expert_shape {
  std::uint32_t hidden_size = 0;        // H
  std::uint32_t intermediate_size = 0;  // I
  weight_format format{};
  activation_kind activation = activation_kind::swiglu;
  bool bias = false;  // FC1 and FC2 add a bias

  bool operator==(const expert_shape&) const = default;
};

// One expert in canonical bytes (schemas/model/weight_format.hpp): gate, up [I, H], down [H, I].
// Requires: sizes of matrix_form_of(); no NaN among codes and scales (loaders refuse them); gate is
// empty where the activation has none; biases are empty unless shape.bias (gate_bias also where
// there is no gate). Any alignment.
struct expert_tensors {
  std::span<const std::byte> gate;
  std::span<const std::byte> up;
  std::span<const std::byte> down;
  std::span<const float> gate_bias{};  // [I]
  std::span<const float> up_bias{};    // [I]
  std::span<const float> down_bias{};  // [H], added before the router weight
  activation_constants constants{};
};

// Rows that lie apart: row r of the region is at base + r * pitch_bytes, H elements f32. rows_live
// is read when run() is called; rows at or beyond it may hold anything.
struct row_region {
  const std::byte* base = nullptr;
  std::size_t pitch_bytes = 0;
  std::uint32_t rows_live = 0;
};

// Where results of a region go. partial: row r at base + r * pitch_bytes, H f32. exact: position j
// of row r at base + (r * k_in + j) * pitch_bytes; positions with slot -1 are left untouched.
struct out_region {
  std::byte* base = nullptr;
  std::size_t pitch_bytes = 0;
};

// One entry: row `row` of region `region` asks local slot `slot` at its position `position` with
// router weight `weight`.
struct expert_entry {
  std::uint32_t region = 0;
  std::uint32_t row = 0;
  std::uint16_t position = 0;
  std::uint16_t slot = 0;
  float weight = 0.0F;
};

// Low-rank adapters of one call. One projection of one expert: y = W x + scale * B (A x), where it
// is added before bias and activation (FC1) or before bias and router weight (FC2).
inline constexpr std::uint32_t k_lora_rank_max = 256;

struct lora_pair {
  const float* a = nullptr;  // [rank, in]; nullptr = this projection is not adapted
  const float* b = nullptr;  // [out, rank]
};

struct lora_expert {
  lora_pair gate;  // not read where the activation has no gate
  lora_pair up;
  lora_pair down;
  std::uint32_t rank = 0;  // 1..k_lora_rank_max
  float scale = 0.0F;      // alpha / rank
};

struct lora_call {
  // One a region: adapter of each live row, -1 = none; nullptr = none in the whole region.
  std::span<const std::int32_t* const> adapter_of;
  // [adapter * pages.size() + slot]; nullptr = the adapter does not touch that expert.
  std::span<const lora_expert* const> experts;
};

// Where a call's time goes. A backend that can tell at the price of a look at the clock a stage
// writes it; others leave all as it was.
struct stage_clock {
  time_ns last = 0;        // in: when run() was called; out: when the last stage ended
  duration_ns fc1_ns = 0;  // rows gathered, first product and activation, which are one loop
  duration_ns fc2_ns = 0;
  std::uint32_t padding_rows = 0;  // places of a launch that hold no row

  void end_stage(duration_ns& of) noexcept {
    const time_ns now = monotonic_now();
    of += now - last;
    last = now;
  }
};

struct expert_call {
  std::span<const row_region> in;
  std::span<const out_region> out;  // as many as `in`
  std::span<const expert_entry>
      entries;  // sorted by (slot, region, row, position): see group_entries()
  std::span<const std::byte* const> pages;  // local slot -> page, nullptr = slot holds no expert
  std::uint32_t k_in = 0;                   // positions per row
  return_mode mode = return_mode::partial;
  std::span<std::byte> workspace;   // >= workspace_bytes(rows, k_in), 64-byte aligned
  const lora_call* lora = nullptr;  // nullptr = no row has an adapter
  stage_clock* clock = nullptr;     // nullptr = nobody asks
};

// What rows and the intermediate are narrowed to before products, which are summed in f32. It says
// how far a result may lie from that of the same weights in fp64.
enum class operand_form : std::uint8_t { f32 = 0, bf16 = 1, fp8 = 2 };

enum class compute_status : std::uint8_t {
  ok = 0,
  bad_slot =
      1,  // an entry names a slot outside the table or without a page: the whole output is void
  workspace_short = 2,
  lora_unsupported = 3,  // the call names adapters; this backend has none. Nothing was written
  device_lost = 4,       // the device failed: the output is void, and so is every later one's
};

class Backend {
 public:
  virtual ~Backend() = default;

  // "moetier.cpu.avx2.none": provider.technique.kernel.quant.
  virtual std::string_view identity() const noexcept = 0;
  // Names the page layout; equal ids mean equal bytes for equal tensors.
  virtual std::string_view layout_id() const noexcept = 0;
  // Whether the bits of y(row, slot) depend on no other row, entry order, chunking or slot number.
  virtual bool row_invariant() const noexcept = 0;
  // (optional) Whether run() takes adapters; without it a call with `lora` is refused.
  virtual bool supports_lora() const noexcept { return false; }
  // (optional) f32 unless said otherwise.
  virtual operand_form operands() const noexcept { return operand_form::f32; }
  virtual const expert_shape& shape() const noexcept = 0;

  // Bytes of one page (a multiple of 64) and the alignment it needs (64).
  virtual std::size_t page_bytes() const noexcept = 0;
  // Writes one expert's tensors into `page`, every byte of it (tails and padding are zeros), so
  // that a checksum over the page is well defined. Requires: page.size() == page_bytes(), 64-byte
  // aligned. Thread: any (one page per thread).
  virtual void pack_page(const expert_tensors& tensors, std::span<std::byte> page) const = 0;

  // Pure and monotone in `rows` and `k_in`.
  virtual std::size_t workspace_bytes(std::uint32_t rows, std::uint32_t k_in) const noexcept = 0;

  // Computes all entries. In partial mode every live row of every region is written: a row without
  // entries as +0.
  virtual compute_status run(const expert_call& call) = 0;
};

// Sorts entries for a Backend: by (slot, region, row, position), stable counting sort, no
// allocation. slot_counts gets the entries per local slot. Requires: scratch.size() >=
// entries.size(), slot_counts covers all slots.
void group_entries(std::span<expert_entry> entries, std::span<expert_entry> scratch,
                   std::span<std::uint32_t> slot_counts) noexcept;

// Threads of a compute pool shared by the CPU backends of a process: the caller takes part.
struct cpu_options {
  unsigned threads = 1;          // threads over slots and panels, the caller included
  std::string_view force_isa{};  // "" = widest this machine has and the build holds; "avx2"
};

// Why a candidate cannot run here; empty = eligible. Pure: the environment comes in as a value.
struct cpu_features {
  bool avx2 = false;
  bool fma = false;
  bool avx512f = false;
  bool f16c = false;
};
cpu_features detect_cpu_features() noexcept;

// Candidates in order of preference for a CPU worker: "cpu_avx2" then "cpu_ref"; what each executes
// stands in cpu_capabilities.hpp. `force` = "" or "auto" picks the first eligible, else exactly
// that one ("reference" only so) or reason::backend_unresolved that names what lacks.
expected<std::unique_ptr<Backend>> make_cpu_backend(std::string_view force,
                                                    const expert_shape& shape,
                                                    const cpu_options& options,
                                                    const cpu_features& features);

// The fp64 oracle: y = W2·act(W1·x + b1, W3·x + b3) + b2 of one expert for one row, in double on
// the dequantised weights. Self-tests and unit tests compare backends with it. Requires: y.size()
// == x.size() == H.
void reference_expert(const expert_shape& shape, const expert_tensors& tensors,
                      std::span<const float> x, std::span<double> y);

// The oracle as a Backend ("moetier.reference.scalar.<quant>"), slow: y is computed in double and
// rounded once. Requires: a shape that make_cpu_backend() takes. May throw std::bad_alloc.
std::unique_ptr<Backend> make_reference_backend(const expert_shape& shape);

}  // namespace moetier::kernels
