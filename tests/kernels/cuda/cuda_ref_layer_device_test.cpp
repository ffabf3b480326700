// cuda_ref on a device against the fp64 oracle: every format with every activation, both modes.
#include <cmath>

#include "kernels/cuda/cuda_ref_layer.hpp"
#include "tests/kernels/cuda/device_array.hpp"
#include "tests/kernels/expert_case.hpp"

namespace moetier::kernels::cuda {
namespace {

std::vector<std::byte> bytes_of(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Experts on the device behind one layer; slot 1 is empty.
struct device_experts {
  cuda_ref_layer layer;
  expert experts[2];
  device_array<std::byte> pages[2];
  std::vector<const std::byte*> table;
  device_array<const std::byte*> device_table;

  device_experts(const expert_shape& shape, const device_size& size, std::mt19937& random)
      : layer(shape, size) {
    for (std::size_t i = 0; i < 2; ++i) {
      experts[i] = random_expert(shape, random);
      aligned_bytes page(layer.page_bytes());
      layer.pack_page(experts[i].tensors(), page.span());
      pages[i] = on_device(std::vector<std::byte>(page.span().begin(), page.span().end()));
    }
    table = {pages[0].get(), nullptr, pages[1].get()};
    device_table = on_device(table);
  }
  const expert& of(std::int32_t slot) const { return experts[slot == 0 ? 0 : 1]; }
};

struct call_case {
  std::vector<std::byte> rows;  // f32 or bf16
  row_type row_as = row_type::f32;
  std::vector<std::int32_t> slot_ids;
  std::vector<float> weights;
  std::uint32_t k_in = 1;
  std::uint32_t rows_live = 0;
  return_mode mode = return_mode::partial;
};

struct outcome {
  std::vector<float> out;  // poison -7 where nothing was written
  std::uint32_t status = 0;
};

outcome run(const device_experts& e, const call_case& c) {
  const std::uint32_t hidden = e.layer.shape().hidden_size;
  const auto rows_cap = static_cast<std::uint32_t>(c.slot_ids.size()) / c.k_in;
  const std::size_t outputs = c.mode == return_mode::exact ? c.slot_ids.size() : rows_cap;
  const layer_capacity capacity{.rows_cap = rows_cap, .k_in = c.k_in, .slots = 3};
  const std::size_t room = e.layer.workspace_bytes(capacity);
  const auto rows = on_device(c.rows);
  const auto live = on_device(std::vector{c.rows_live});
  const auto ids = on_device(c.slot_ids);
  const auto weights = on_device(c.weights);
  const auto out = on_device(std::vector<float>(outputs * hidden, -7.0F));
  const auto workspace = on_device(std::vector<std::byte>(room, std::byte{0xff}));
  const auto status = on_device(std::vector<std::uint32_t>{0});
  const layer_call call{
      .rows = rows.get(),
      .row_pitch_bytes = std::size_t{hidden} * (c.row_as == row_type::f32 ? 4 : 2),
      .row_as = c.row_as,
      .rows_live = live.get(),
      .rows_cap = rows_cap,
      .k_in = c.k_in,
      .slot_ids = ids.get(),
      .weights = weights.get(),
      .pages = e.device_table.get(),
      .slots = 3,
      .mode = c.mode,
      .out = reinterpret_cast<std::byte*>(out.get()),
      .out_pitch_bytes = std::size_t{hidden} * 4,
      .out_as = out_type::f32,
      .workspace = {workspace.get(), room},
      .status = status.get()};
  EXPECT_EQ(e.layer.group(call, nullptr).error, 0);
  EXPECT_EQ(e.layer.compute(call, nullptr).error, 0);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return {on_host(out, outputs * hidden), on_host(status, 1).front()};
}

// Of `got` against `truth`, over the norm of the truth.
double error_of(std::span<const float> got, std::span<const double> truth) {
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    error += (got[i] - truth[i]) * (got[i] - truth[i]);
    norm += truth[i] * truth[i];
  }
  return std::sqrt(error / norm);
}

const std::vector<std::int32_t> k_ids = {2, 0, -1, 0, 0, 2, -1, -1, -1, 2, 2, 0};

void expect_oracle(const expert_shape& shape, const device_size& size, unsigned seed) {
  std::mt19937 random(seed);
  const device_experts e(shape, size, random);
  const std::uint32_t hidden = shape.hidden_size;
  const std::vector<float> x = random_rows(4 * std::size_t{hidden}, random);
  call_case c{.rows = bytes_of(x),
              .slot_ids = k_ids,
              .weights = random_rows(k_ids.size(), random),
              .k_in = 3,
              .rows_live = 3};
  const outcome partial = run(e, c);
  c.mode = return_mode::exact;
  const outcome exact = run(e, c);
  EXPECT_EQ(partial.status, 0u);
  EXPECT_EQ(exact.status, 0u);
  for (std::size_t r = 0; r < 4; ++r) {
    std::vector<double> sum(hidden);
    bool any = false;
    for (std::size_t j = 0; j < 3; ++j) {
      const std::int32_t slot = k_ids[r * 3 + j];
      const std::span got(exact.out.data() + (r * 3 + j) * hidden, hidden);
      if (slot < 0 || r == 3) {
        EXPECT_EQ(got[0], -7.0F);
        continue;
      }
      std::vector<double> y(hidden);
      reference_expert(shape, e.of(slot).tensors(), std::span(x).subspan(r * hidden, hidden), y);
      EXPECT_LE(error_of(got, y), 1e-5);
      for (std::size_t n = 0; n < hidden; ++n) sum[n] += c.weights[r * 3 + j] * y[n];
      any = true;
    }
    const std::span got(partial.out.data() + r * hidden, hidden);
    if (any) {
      EXPECT_LE(error_of(got, sum), 1e-5) << "row " << r;
    } else {
      EXPECT_EQ(got[hidden - 1], r == 3 ? -7.0F : 0.0F) << "row " << r;
    }
  }
}

class cuda_ref_layer_device : public device_test {};

TEST_F(cuda_ref_layer_device, is_within_1e_5_of_the_oracle_in_every_format_and_activation) {
  std::vector<weight_format> formats;
  for (const dtype stored : {dtype::f32, dtype::bf16, dtype::f16})
    formats.push_back({.quant = quant_kind::none, .stored = stored});
  for (unsigned quant = 1; quant < k_quant_kinds; ++quant)
    formats.push_back({.quant = static_cast<quant_kind>(quant)});
  for (const weight_format& format : formats) {
    for (unsigned kind = 0; kind < k_activation_kinds; ++kind) {
      for (const bool bias : {false, true}) {
        const expert_shape shape{128, 256, format, static_cast<activation_kind>(kind), bias};
        SCOPED_TRACE(testing::Message()
                     << quant_name(format.quant) << " " << dtype_name(format.stored) << " "
                     << activation_name(shape.activation) << (bias ? " bias" : ""));
        expect_oracle(shape, size, kind);
      }
    }
  }
}

TEST_F(cuda_ref_layer_device, takes_any_sizes_that_the_format_takes) {
  for (const quant_kind quant : {quant_kind::none, quant_kind::fp8_tensor, quant_kind::fp8_block}) {
    expect_oracle({37, 53, {.quant = quant}, activation_kind::swiglu, true}, size, 1);
    expect_oracle({1, 1, {.quant = quant}, activation_kind::swiglu, false}, size, 2);
    expect_oracle({300, 131, {.quant = quant}, activation_kind::geglu, false}, size, 3);
  }
}

TEST_F(cuda_ref_layer_device, gives_a_row_the_same_bits_alone_and_among_others) {
  const expert_shape shape{96, 160, {}, activation_kind::swiglu, false};
  std::mt19937 random(9);
  const device_experts e(shape, size, random);
  const std::vector<float> x = random_rows(4 * std::size_t{96}, random);
  call_case c{.rows = bytes_of(x),
              .slot_ids = k_ids,
              .weights = random_rows(k_ids.size(), random),
              .k_in = 3,
              .rows_live = 4};
  const outcome all = run(e, c);
  c.rows = bytes_of({x.begin() + 96, x.begin() + 2 * 96});
  c.slot_ids = {0, 0, 2};
  c.weights = {c.weights.begin() + 3, c.weights.begin() + 6};
  c.rows_live = 1;
  const outcome one = run(e, c);
  EXPECT_TRUE(equal_bits(one.out, std::span(all.out).subspan(96, 96)));
}

TEST_F(cuda_ref_layer_device, reads_bf16_rows) {
  const expert_shape shape{64, 64, {}, activation_kind::swiglu, false};
  std::mt19937 random(10);
  const device_experts e(shape, size, random);
  std::vector<float> x = random_rows(64, random);
  std::vector<std::byte> rows(64 * 2);
  for (std::size_t k = 0; k < 64; ++k) {
    const std::uint16_t bits = bf16_from_f32(x[k]);
    std::memcpy(&rows[2 * k], &bits, 2);
    x[k] = f32_from_bf16(bits);
  }
  call_case c{
      .rows = rows, .row_as = row_type::bf16, .slot_ids = {0}, .weights = {1}, .rows_live = 1};
  const outcome narrow = run(e, c);
  c.rows = bytes_of(x);
  c.row_as = row_type::f32;
  EXPECT_TRUE(equal_bits(narrow.out, run(e, c).out));
}

TEST_F(cuda_ref_layer_device, reports_a_slot_outside_the_table_or_without_a_page) {
  const expert_shape shape{32, 32, {}, activation_kind::swiglu, false};
  std::mt19937 random(11);
  const device_experts e(shape, size, random);
  for (const std::int32_t bad : {1, 3, -2}) {
    const call_case c{.rows = bytes_of(random_rows(64, random)),
                      .slot_ids = {0, bad},
                      .weights = {1, 1},
                      .rows_live = 2};
    EXPECT_EQ(run(e, c).status, static_cast<std::uint32_t>(device_failure::bad_slot) |
                                    static_cast<std::uint32_t>(bad) << 8);
  }
}

}  // namespace
}  // namespace moetier::kernels::cuda
