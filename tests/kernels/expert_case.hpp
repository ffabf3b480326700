#pragma once
// Random experts and calls for the tests of backends: tensors of a shape, pages packed by the
// backend under test, rows that lie apart, and one run. Thread: owner.

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "kernels/backend.hpp"
#include "kernels/quant/matrix_quantiser.hpp"

namespace moetier::kernels {

// Bytes with 64-byte alignment, as pages and workspaces need.
class aligned_bytes {
 public:
  explicit aligned_bytes(std::size_t bytes) : storage_(bytes + 64), bytes_(bytes) {
    void* at = storage_.data();
    std::size_t room = storage_.size();
    begin_ = static_cast<std::byte*>(std::align(64, bytes, at, room));
  }
  std::byte* data() noexcept { return begin_; }
  const std::byte* data() const noexcept { return begin_; }
  std::span<std::byte> span() noexcept { return {begin_, bytes_}; }

 private:
  std::vector<std::byte> storage_;
  std::size_t bytes_;
  std::byte* begin_;
};

struct expert {
  std::vector<std::byte> gate, up, down;
  std::vector<float> gate_bias, up_bias, down_bias;
  activation_constants constants;

  expert_tensors tensors() const {
    return {gate, up, down, gate_bias, up_bias, down_bias, constants};
  }
};

// Constants that a kind takes; the limit cuts some of normal data.
inline activation_constants constants_for(activation_kind kind) {
  switch (kind) {
    case activation_kind::swiglu: return {.limit = 1.25F};
    case activation_kind::swiglu_bias: return {.alpha = 1.702F, .beta = 1.0F, .limit = 1.5F};
    case activation_kind::situ: return {.alpha = 3.0F, .beta = 4.0F};
    case activation_kind::swiglu_step: return {.limit = 0.75F};
    default: return {};
  }
}

inline std::vector<std::byte> random_tensor(std::size_t elements, dtype stored, float scale,
                                            std::mt19937& random) {
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<std::byte> bytes(elements * dtype_bytes(stored));
  for (std::size_t i = 0; i < elements; ++i) {
    const float value = normal(random);
    if (stored == dtype::f32) {
      std::memcpy(&bytes[4 * i], &value, 4);
    } else {
      const std::uint16_t bits = stored == dtype::bf16 ? bf16_from_f32(value) : f16_from_f32(value);
      std::memcpy(&bytes[2 * i], &bits, 2);
    }
  }
  return bytes;
}

inline std::vector<float> random_rows(std::size_t floats, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> rows(floats);
  for (float& value : rows) value = normal(random);
  return rows;
}

// Normal values [out, in] that keep a row's size, as canonical bytes of any format.
inline std::vector<std::byte> random_matrix(const weight_format& format, std::uint32_t out,
                                            std::uint32_t in, std::mt19937& random) {
  const float scale = 1.0F / std::sqrt(static_cast<float>(in));
  if (format.quant == quant_kind::none)
    return random_tensor(std::size_t{out} * in, format.stored, scale, random);
  std::vector<float> values = random_rows(std::size_t{out} * in, random);
  for (float& value : values) value *= scale;
  return quantise_matrix(format, values, out, in).value().bytes;
}

inline expert random_expert(const expert_shape& shape, std::mt19937& random) {
  const std::uint32_t hidden = shape.hidden_size;
  const std::uint32_t units = shape.intermediate_size;
  expert e;
  if (is_gated(shape.activation)) e.gate = random_matrix(shape.format, units, hidden, random);
  e.up = random_matrix(shape.format, units, hidden, random);
  e.down = random_matrix(shape.format, hidden, units, random);
  if (shape.bias) {
    if (is_gated(shape.activation)) e.gate_bias = random_rows(units, random);
    e.up_bias = random_rows(units, random);
    e.down_bias = random_rows(hidden, random);
  }
  if (shape.activation != activation_kind::swiglu) e.constants = constants_for(shape.activation);
  return e;
}

inline std::unique_ptr<Backend> backend_of(std::string_view name, const expert_shape& shape,
                                           unsigned threads = 1) {
  auto made = make_cpu_backend(name, shape, {.threads = threads}, detect_cpu_features());
  return made ? std::move(*made) : nullptr;
}

inline bool runs_here(std::string_view name) {
  const cpu_features features = detect_cpu_features();
  return name != "cpu_avx2" || (features.avx2 && features.fma);
}

// Pages of experts, slot by slot; a slot may stay empty.
class page_table {
 public:
  explicit page_table(const Backend& backend) : backend_(backend) {}
  void add(const expert& e) {
    pages_.emplace_back(backend_.page_bytes());
    std::memset(pages_.back().data(), 0xff, backend_.page_bytes());
    backend_.pack_page(e.tensors(), pages_.back().span());
    table_.push_back(pages_.back().data());
  }
  void add_empty() { table_.push_back(nullptr); }
  std::span<const std::byte* const> table() const { return table_; }

 private:
  const Backend& backend_;
  std::vector<aligned_bytes> pages_;
  std::vector<const std::byte*> table_;
};

// One run with a workspace of just the promised size, full of NaN.
inline compute_status run_on(Backend& backend, expert_call call) {
  std::uint32_t rows = 0;
  for (const row_region& region : call.in) rows += region.rows_live;
  aligned_bytes workspace(backend.workspace_bytes(rows, call.k_in));
  std::memset(workspace.data(), 0xff, workspace.span().size());
  call.workspace = workspace.span();
  return backend.run(call);
}

inline row_region rows_in(const std::vector<float>& rows, std::size_t hidden) {
  return {.base = reinterpret_cast<const std::byte*>(rows.data()),
          .pitch_bytes = hidden * sizeof(float),
          .rows_live = static_cast<std::uint32_t>(rows.size() / hidden)};
}

inline out_region rows_out(std::vector<float>& rows, std::size_t hidden) {
  return {.base = reinterpret_cast<std::byte*>(rows.data()), .pitch_bytes = hidden * sizeof(float)};
}

// y of every row through one slot, unweighted.
inline std::vector<float> outputs_of(Backend& backend, const page_table& pages, std::uint16_t slot,
                                     const std::vector<float>& rows) {
  const std::size_t hidden = backend.shape().hidden_size;
  std::vector<float> out(rows.size());
  const row_region in = rows_in(rows, hidden);
  const out_region to = rows_out(out, hidden);
  std::vector<expert_entry> entries;
  for (std::uint32_t r = 0; r < in.rows_live; ++r) entries.push_back({.row = r, .slot = slot});
  const compute_status status = run_on(backend, {.in = {&in, 1},
                                                 .out = {&to, 1},
                                                 .entries = entries,
                                                 .pages = pages.table(),
                                                 .k_in = 1,
                                                 .mode = return_mode::exact,
                                                 .workspace = {}});
  if (status != compute_status::ok) out.clear();
  return out;
}

inline bool equal_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

}  // namespace moetier::kernels
