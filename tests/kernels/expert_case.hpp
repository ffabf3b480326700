#pragma once
// Random experts and calls for the tests of backends: tensors of a shape, pages packed by the
// backend under test, rows that lie apart, and one run. Thread: owner.

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "kernels/backend.hpp"

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

  expert_tensors tensors() const { return {gate, up, down}; }
};

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

inline expert random_expert(const expert_shape& shape, std::mt19937& random) {
  const std::size_t elements = std::size_t{shape.hidden_size} * shape.intermediate_size;
  const float in = 1.0F / std::sqrt(static_cast<float>(shape.hidden_size));
  const float mid = 1.0F / std::sqrt(static_cast<float>(shape.intermediate_size));
  return {.gate = random_tensor(elements, shape.format.stored, in, random),
          .up = random_tensor(elements, shape.format.stored, in, random),
          .down = random_tensor(elements, shape.format.stored, mid, random)};
}

inline std::vector<float> random_rows(std::size_t floats, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> rows(floats);
  for (float& value : rows) value = normal(random);
  return rows;
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
