#pragma once
// One expert layer on a device, for tests: random experts in pages, rows, slot ids and weights up,
// one run, outputs down. Outputs, workspace and rows beyond the live ones are poisoned with NaN
// before every run. Thread: owner.

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/cuda/make_expert_layer.hpp"
#include "tests/kernels/cuda/device_memory.hpp"
#include "tests/kernels/cuda/layer_oracle.hpp"

namespace moetier::kernels::cuda {

struct batch {
  std::uint32_t rows_cap = 0;
  std::uint32_t rows_live = 0;
  std::uint32_t k_in = 1;
  std::vector<float> rows{};          // [rows_live][H]
  std::vector<std::int32_t> slots{};  // [rows_live][k_in]
  std::vector<float> weights{};       // [rows_live][k_in]
};

struct run_options {
  return_mode mode = return_mode::partial;
  row_type row_as = row_type::f32;
  out_type out_as = out_type::f32;
  std::uint32_t rows_per_slot = 0;
};

struct run_result {
  std::vector<float> out;  // partial [rows_cap][H], exact [rows_cap * k_in][H]; NaN = not written
  std::uint32_t status = 0;
};

class layer_case final {
 public:
  layer_case(std::string_view identity, const expert_shape& shape, std::uint32_t slots,
             unsigned seed = 1)
      : shape_(shape), random_(seed) {
    auto made = make_expert_layer(identity, shape, {});
    if (!made) {
      ADD_FAILURE() << made.error().text;
      return;
    }
    layer_ = std::move(*made);
    std::vector<const std::byte*> table;
    experts_.reserve(slots);
    values_.resize(slots);
    for (std::uint32_t s = 0; s < slots; ++s) {
      experts_.push_back(random_expert(shape, random_));
      std::vector<std::byte> page(layer_->page_bytes());
      layer_->pack_page(experts_.back().tensors(), page);
      pages_.emplace_back(page);
      table.push_back(pages_.back().as<>());
    }
    set_table(table);
  }

  const expert_shape& shape() const { return shape_; }
  ExpertLayer& layer() { return *layer_; }
  std::mt19937& random() { return random_; }
  std::uint32_t slots() const { return static_cast<std::uint32_t>(pages_.size()); }
  void empty_slot(std::uint32_t slot) {
    std::vector<const std::byte*> table = table_->read<const std::byte*>();
    table[slot] = nullptr;
    set_table(table);
  }

  // Rows whose slot ids `pick(row, position)` gives.
  template <class Pick>
  batch make_batch(std::uint32_t rows_live, std::uint32_t k_in, Pick pick) {
    batch b{.rows_cap = rows_live + 3, .rows_live = rows_live, .k_in = k_in};
    b.rows = random_rows(std::size_t{rows_live} * shape_.hidden_size, random_);
    for (float& x : b.rows) x = f32_from_bf16(bf16_from_f32(x));  // exact in both row types
    std::uniform_real_distribution<float> weight(0.1F, 1.0F);
    for (std::uint32_t r = 0; r < rows_live; ++r) {
      for (std::uint32_t j = 0; j < k_in; ++j) {
        b.slots.push_back(pick(r, j));
        b.weights.push_back(weight(random_));
      }
    }
    return b;
  }
  // The same batch with fewer live rows.
  static batch first_of(const batch& b, std::uint32_t rows_live, std::uint32_t hidden_size) {
    batch few = b;
    few.rows_live = rows_live;
    few.rows.resize(std::size_t{rows_live} * hidden_size);
    few.slots.resize(std::size_t{rows_live} * b.k_in);
    few.weights.resize(std::size_t{rows_live} * b.k_in);
    return few;
  }
  // Distinct random slots.
  batch random_batch(std::uint32_t rows_live, std::uint32_t k_in) {
    std::vector<std::int32_t> order(slots());
    for (std::uint32_t s = 0; s < slots(); ++s) order[s] = static_cast<std::int32_t>(s);
    return make_batch(rows_live, k_in, [&](std::uint32_t, std::uint32_t j) {
      if (j == 0) std::shuffle(order.begin(), order.end(), random_);
      return order[j % order.size()];
    });
  }

  run_result run(const batch& b, const run_options& o) {
    const std::uint32_t h = shape_.hidden_size;
    const std::size_t out_rows =
        std::size_t{b.rows_cap} * (o.mode == return_mode::exact ? b.k_in : 1);
    const std::size_t out_width = o.out_as == out_type::f32 ? 4 : 2;
    device_bytes rows(row_bytes(b, o.row_as));
    device_bytes slots(padded(b.slots, std::size_t{b.rows_cap} * b.k_in, 0));
    device_bytes weights(padded(b.weights, std::size_t{b.rows_cap} * b.k_in,
                                std::numeric_limits<float>::quiet_NaN()));
    device_bytes live(std::vector<std::uint32_t>{b.rows_live});
    device_bytes status(std::vector<std::uint32_t>{0});
    device_bytes out(out_rows * h * out_width);
    if (!workspace_ || workspace_capacity_ != layer_capacity{b.rows_cap, b.k_in, this->slots()}) {
      workspace_capacity_ = {b.rows_cap, b.k_in, this->slots()};
      workspace_ = std::make_unique<device_bytes>(layer_->workspace_bytes(workspace_capacity_));
      EXPECT_TRUE(layer_->init_workspace(workspace_->span(), nullptr).ok());
    }
    const layer_call call{.rows = rows.as<>(),
                          .row_pitch_bytes = h * (o.row_as == row_type::f32 ? 4u : 2u),
                          .row_as = o.row_as,
                          .rows_live = live.as<std::uint32_t>(),
                          .rows_cap = b.rows_cap,
                          .k_in = b.k_in,
                          .slot_ids = slots.as<std::int32_t>(),
                          .weights = weights.as<float>(),
                          .pages = table_->as<const std::byte*>(),
                          .slots = this->slots(),
                          .mode = o.mode,
                          .out = out.as<>(),
                          .out_pitch_bytes = h * out_width,
                          .out_as = o.out_as,
                          .rows_per_slot = o.rows_per_slot,
                          .workspace = workspace_->span(),
                          .status = status.as<std::uint32_t>()};
    EXPECT_EQ(layer_->group(call, nullptr).error, 0);
    EXPECT_EQ(layer_->compute(call, nullptr).error, 0);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    run_result result;
    result.status = status.read<std::uint32_t>()[0];
    if (o.out_as == out_type::f32) {
      result.out = out.read<float>();
    } else {
      for (const std::uint16_t bits : out.read<std::uint16_t>())
        result.out.push_back(f32_from_bf16(bits));
    }
    return result;
  }

  // What run() should give in double; NaN where nothing is to be written. An output that was once
  // computed is kept: the oracle is slow.
  std::vector<double> expected_out(const batch& b, return_mode mode, rounding how) {
    const std::uint32_t h = shape_.hidden_size;
    compute_missing(b, how);
    const bool exact = mode == return_mode::exact;
    std::vector<double> out(std::size_t{b.rows_cap} * (exact ? b.k_in : 1) * h,
                            std::numeric_limits<double>::quiet_NaN());
    for (std::uint32_t r = 0; r < b.rows_live; ++r) {
      if (!exact) std::fill_n(out.begin() + r * std::size_t{h}, h, 0.0);
      for (std::uint32_t j = 0; j < b.k_in; ++j) {
        const std::size_t at = std::size_t{r} * b.k_in + j;
        if (b.slots[at] < 0) continue;
        const std::vector<double>& y = outputs_.at(key_of(b, at));
        for (std::uint32_t n = 0; n < h; ++n) {
          if (exact) {
            out[at * h + n] = y[n];
          } else {
            out[r * std::size_t{h} + n] += double{b.weights[at]} * y[n];
          }
        }
      }
    }
    return out;
  }

 private:
  using output_key = std::pair<std::int32_t, std::vector<float>>;  // slot, row

  output_key key_of(const batch& b, std::size_t entry) const {
    const std::size_t h = shape_.hidden_size;
    const auto row = b.rows.begin() + static_cast<std::ptrdiff_t>(entry / b.k_in * h);
    return {b.slots[entry], std::vector<float>(row, row + static_cast<std::ptrdiff_t>(h))};
  }
  void compute_missing(const batch& b, rounding how) {
    std::vector<std::pair<const output_key, std::vector<double>>*> missing;
    for (std::size_t e = 0; e < std::size_t{b.rows_live} * b.k_in; ++e) {
      if (b.slots[e] < 0) continue;
      const auto [at, added] = outputs_.try_emplace(key_of(b, e));
      if (added) missing.push_back(&*at);
      auto& values = values_[static_cast<std::size_t>(b.slots[e])];
      if (!values)
        values =
            std::make_unique<expert_values>(shape_, experts_[static_cast<std::size_t>(b.slots[e])]);
    }
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
      for (std::size_t i = next++; i < missing.size(); i = next++) {
        const output_key& key = missing[i]->first;
        missing[i]->second = values_[static_cast<std::size_t>(key.first)]->output(how, key.second);
      }
    };
    std::vector<std::thread> threads;
    for (unsigned t = 1; t < std::thread::hardware_concurrency(); ++t) threads.emplace_back(work);
    work();
    for (std::thread& t : threads) t.join();
  }
  void set_table(const std::vector<const std::byte*>& table) {
    table_ = std::make_unique<device_bytes>(table);
  }
  template <class T>
  static std::vector<T> padded(std::vector<T> values, std::size_t size, T with) {
    values.resize(size, with);
    return values;
  }
  std::vector<std::byte> row_bytes(const batch& b, row_type as) const {
    const std::size_t count = std::size_t{b.rows_cap} * shape_.hidden_size;
    const std::vector<float> all = padded(b.rows, count, std::numeric_limits<float>::quiet_NaN());
    std::vector<std::byte> bytes(count * (as == row_type::f32 ? 4 : 2));
    for (std::size_t i = 0; i < count; ++i) {
      if (as == row_type::f32) {
        std::memcpy(&bytes[i * 4], &all[i], 4);
      } else {
        const std::uint16_t bits = bf16_from_f32(all[i]);
        std::memcpy(&bytes[i * 2], &bits, 2);
      }
    }
    return bytes;
  }

  const expert_shape shape_;
  std::mt19937 random_;
  std::unique_ptr<ExpertLayer> layer_;
  std::vector<expert> experts_;
  std::vector<std::unique_ptr<expert_values>> values_;  // by slot
  std::map<output_key, std::vector<double>> outputs_;   // of the oracle
  std::vector<device_bytes> pages_;
  std::unique_ptr<device_bytes> table_;
  std::unique_ptr<device_bytes> workspace_;
  layer_capacity workspace_capacity_;
};

// Frobenius norm of the difference over that of what was expected; infinite where one is NaN and
// the other is not.
inline double norm_error(const std::vector<float>& got, const std::vector<double>& want) {
  if (got.size() != want.size()) return std::numeric_limits<double>::infinity();
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) != std::isnan(want[i])) return std::numeric_limits<double>::infinity();
    if (std::isnan(got[i])) continue;
    difference += (got[i] - want[i]) * (got[i] - want[i]);
    size += want[i] * want[i];
  }
  return size == 0 ? std::sqrt(difference) : std::sqrt(difference / size);
}

}  // namespace moetier::kernels::cuda
