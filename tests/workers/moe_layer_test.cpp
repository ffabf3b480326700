#include "workers/layer/moe_layer.hpp"

#include <cmath>
#include <cstring>
#include <map>

#include <gtest/gtest.h>

namespace moetier::workers {
namespace {

constexpr std::uint32_t k_hidden = 8;
constexpr std::uint32_t k_inner = 4;
constexpr std::uint32_t k_top_k = 3;
constexpr std::uint32_t k_rows = 16;

// A half that keeps one return region and what was given back.
class captured_half final : public transport::WorkerHalf {
 public:
  const transport::member_address& address() const noexcept override { return address_; }
  expected<void> attach_source(const transport::source_identity&, const transport::source_shape&,
                               const transport::member_address&) override {
    return {};
  }
  void detach_source(source_id) override {}
  std::size_t poll(std::span<transport::arrival>) override { return 0; }
  std::span<std::byte> return_region(transport::arrival_ticket) override { return region; }
  transport::comm_status give_back(transport::arrival_ticket, std::uint32_t given, status code,
                                   std::uint64_t number) override {
    rows = given;
    result = code;
    detail = number;
    return transport::comm_status::ok;
  }
  void wait(std::chrono::nanoseconds, std::chrono::nanoseconds) override {}
  void wake() noexcept override {}
  transport::carrier_counters counters() const noexcept override { return {}; }

  std::vector<std::byte> region;
  std::uint32_t rows = 0;
  status result = status::pending;
  std::uint64_t detail = 0;

 private:
  transport::member_address address_;
};

struct moe_layer_test : ::testing::Test {
  std::unique_ptr<kernels::Backend> backend = *kernels::make_cpu_backend(
      "cpu_ref", {k_hidden, k_inner, {.stored = dtype::f32}, activation_kind::swiglu}, {}, {});
  captured_half half;
  MoeLayer layer{
      {.layers = 2, .rows_max = k_rows, .top_k_max = k_top_k, .sources_max = 4}, *backend, half};
  std::vector<std::vector<float>> weights;  // per expert: gate, up, down
  transport::source_shape shape{.rows_max = k_rows,
                                .hidden_stride = k_hidden * 4,
                                .top_k = k_top_k,
                                .return_stride = k_hidden * 4,
                                .return_rows_max = k_rows * k_top_k};
  std::vector<float> hidden = std::vector<float>(k_rows * k_hidden);
  std::vector<std::byte> records;
  std::uint64_t step = 0;

  void SetUp() override {
    for (int e = 0; e < 3; ++e) {
      std::vector<float> w(3 * k_hidden * k_inner);
      for (std::size_t i = 0; i < w.size(); ++i) w[i] = std::sin(float(i) * 0.7F + float(e));
      weights.push_back(std::move(w));
    }
    for (std::size_t i = 0; i < hidden.size(); ++i) hidden[i] = std::cos(float(i) * 0.31F);
    half.region.resize(std::size_t{shape.return_rows_max} * shape.return_stride);
    layer.install(table(1), 10);  // this worker's slots are 10, 11, 12
    layer.attach(source_id{1});
  }

  kernels::expert_tensors tensors(int e) const {
    const auto bytes = std::as_bytes(std::span(weights[static_cast<std::size_t>(e)]));
    const std::size_t one = bytes.size() / 3;
    return {bytes.first(one), bytes.subspan(one, one), bytes.subspan(2 * one, one)};
  }

  // Layer 4 holds experts 0, 1; layer 6 experts 2, none, 0 in local slots 0, 1, 2.
  std::shared_ptr<const generation_table> table(std::uint64_t generation) {
    const std::vector<layer_slots> rows{{layer_id{4}, {0, 1}}, {layer_id{6}, {2, -1, 0}}};
    std::vector<slot_content> contents;
    for (const layer_slots& row : rows) {
      for (const std::int32_t e : row.experts) {
        contents.push_back({});
        if (e < 0) continue;
        auto* page =
            static_cast<std::byte*>(::operator new[](backend->page_bytes(), std::align_val_t{64}));
        aligned_.emplace_back(page);
        backend->pack_page(tensors(e), {page, backend->page_bytes()});
        contents.back() = {page, 1};
      }
    }
    return std::make_shared<generation_table>(generation_number{generation}, plan_hash{5}, rows,
                                              contents);
  }

  transport::arrival arrival(const std::vector<std::array<std::int32_t, k_top_k>>& slots,
                             kernels::return_mode mode, std::uint16_t layer_number = 4) {
    const std::size_t stride = transport::record_stride(k_top_k);
    records.assign(slots.size() * stride, std::byte{0});
    for (std::size_t r = 0; r < slots.size(); ++r) {
      const std::array<float, k_top_k> w{0.5F, 0.25F, 2.0F};
      std::memcpy(records.data() + r * stride + transport::k_record_head, slots[r].data(),
                  4 * k_top_k);
      const std::int32_t no_adapter = -1;
      std::memcpy(records.data() + r * stride + 4, &no_adapter, 4);
      std::memcpy(records.data() + r * stride + transport::k_record_head + 4 * k_top_k, w.data(),
                  4 * k_top_k);
    }
    transport::arrival a;
    a.ticket = 1;
    a.source = source_id{1};
    a.key.step = ++step;
    a.key.layer = layer_id{layer_number};
    a.key.generation = generation_number{1};
    a.key.plan = plan_hash{5};
    a.key.return_mode = static_cast<std::uint8_t>(mode);
    a.rows = static_cast<std::uint32_t>(slots.size());
    a.hidden = std::as_bytes(std::span(hidden));
    a.records = records;
    a.shape = &shape;
    return a;
  }

  std::vector<double> expert_row(int e, std::size_t row) const {
    std::vector<double> y(k_hidden);
    kernels::reference_expert(backend->shape(), tensors(e),
                              std::span(hidden).subspan(row * k_hidden, k_hidden), y);
    return y;
  }

  // The CPU bound of a row against double.
  static double bound(double y) { return 1e-6 * (1 + std::abs(y)); }

  float given(std::size_t row, std::size_t column) const {
    float v;
    std::memcpy(&v, half.region.data() + row * shape.return_stride + column * 4, 4);
    return v;
  }

 private:
  struct release {
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{64}); }
  };
  std::vector<std::unique_ptr<std::byte, release>> aligned_;
};

TEST_F(moe_layer_test, sums_a_rows_own_experts_and_skips_other_workers_slots) {
  EXPECT_EQ(layer.serve(
                arrival({{10, 11, -1}, {99, 10, 3}, {-1, -1, -1}}, kernels::return_mode::partial)),
            status::ok);
  ASSERT_EQ(half.rows, 3U);
  const auto a = expert_row(0, 0);
  const auto b = expert_row(1, 0);
  const auto c = expert_row(0, 1);
  for (std::size_t i = 0; i < k_hidden; ++i) {
    const double sum = 0.5 * a[i] + 0.25 * b[i];
    EXPECT_NEAR(given(0, i), sum, bound(sum));
    EXPECT_NEAR(given(1, i), 0.25 * c[i], bound(c[i]));
    EXPECT_EQ(given(2, i), 0.0F);
  }
  EXPECT_EQ(layer.counts().snapshot().counts, (std::vector<std::uint64_t>{2, 1, 0, 0, 0}));
}

TEST_F(moe_layer_test, gives_expert_rows_back_without_gaps_in_exact_mode) {
  EXPECT_EQ(layer.serve(
                arrival({{-1, 12, -1}, {3, -1, -1}, {12, -1, 10}}, kernels::return_mode::exact, 6)),
            status::ok);
  ASSERT_EQ(half.rows, 3U);
  const std::vector<std::vector<double>> rows{expert_row(0, 0), expert_row(0, 2), expert_row(2, 2)};
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t i = 0; i < k_hidden; ++i) {
      EXPECT_NEAR(given(r, i), rows[r][i], bound(rows[r][i])) << r;
    }
  }
}

TEST_F(moe_layer_test, answers_stale_with_the_newest_generation_it_holds) {
  auto work = arrival({{10, -1, -1}}, kernels::return_mode::partial);
  work.key.generation = generation_number{2};
  EXPECT_EQ(layer.serve(work), status::stale_generation);
  EXPECT_EQ(half.detail, 1U);
  EXPECT_EQ(half.rows, 0U);
  work.key.generation = generation_number{1};
  work.key.plan = plan_hash{6};
  EXPECT_EQ(layer.serve(work), status::stale_generation);
}

TEST_F(moe_layer_test, never_answers_with_an_expert_missing) {
  EXPECT_EQ(layer.serve(arrival({{11, -1, -1}}, kernels::return_mode::partial, 6)),
            status::invalid);
  EXPECT_EQ(half.rows, 0U);
  EXPECT_EQ(layer.serve(arrival({{10, -1, -1}}, kernels::return_mode::partial, 5)),
            status::invalid);
}

// Packs as another backend does and is lost when it should compute.
class lost_backend final : public kernels::Backend {
 public:
  explicit lost_backend(kernels::Backend& by) : by_(by) {}
  std::string_view identity() const noexcept override { return "moetier.test.lost.none"; }
  std::string_view layout_id() const noexcept override { return by_.layout_id(); }
  bool row_invariant() const noexcept override { return true; }
  const kernels::expert_shape& shape() const noexcept override { return by_.shape(); }
  std::size_t page_bytes() const noexcept override { return by_.page_bytes(); }
  void pack_page(const kernels::expert_tensors& t, std::span<std::byte> page) const override {
    by_.pack_page(t, page);
  }
  std::size_t workspace_bytes(std::uint32_t, std::uint32_t) const noexcept override { return 0; }
  kernels::compute_status run(const kernels::expert_call&) override {
    return kernels::compute_status::device_lost;
  }

 private:
  kernels::Backend& by_;
};

TEST_F(moe_layer_test, says_that_its_device_failed) {
  lost_backend lost(*backend);
  MoeLayer on_lost({.layers = 2, .rows_max = k_rows, .top_k_max = k_top_k, .sources_max = 4}, lost,
                   half);
  on_lost.install(table(1), 10);
  on_lost.attach(source_id{1});
  EXPECT_EQ(on_lost.serve(arrival({{10, 11, -1}}, kernels::return_mode::partial)), status::device);
  EXPECT_EQ(half.rows, 0u);
  EXPECT_EQ(half.result, status::device);
}

TEST_F(moe_layer_test, refuses_a_second_copy_and_does_not_count_warm_up) {
  auto work = arrival({{10, -1, -1}}, kernels::return_mode::partial);
  work.key.flags = transport::k_flag_warmup;
  EXPECT_EQ(layer.serve(work), status::ok);
  EXPECT_EQ(layer.serve(work), status::bad_state);
  EXPECT_EQ(layer.counts().snapshot().counts, (std::vector<std::uint64_t>(5, 0)));
}

// --- adapters ---

// Adapter matrices of one expert, and the expert with them folded in: W + scale * B A, in double.
struct folded {
  adapter content;
  std::vector<float> gate, up, down;  // rounded to f32 after the fold

  folded(const std::vector<float>& weights, std::uint32_t layer_index, std::uint32_t expert,
         std::uint32_t rank, float phase) {
    const std::size_t widening = std::size_t{k_hidden} * k_inner;
    content.values.resize(6 * std::size_t{rank} * (k_hidden + k_inner) / 2);
    for (std::size_t i = 0; i < content.values.size(); ++i)
      content.values[i] = 0.3F * std::sin(float(i) * 1.3F + phase);
    kernels::lora_expert e;
    e.rank = rank;
    e.scale = 1.5F;
    const float* at = content.values.data();
    const auto take = [&](std::size_t out, std::size_t in) {
      const kernels::lora_pair pair{at, at + rank * in};
      at += rank * (in + out);
      return pair;
    };
    e.gate = take(k_inner, k_hidden);
    e.up = take(k_inner, k_hidden);
    e.down = take(k_hidden, k_inner);
    content.experts.push_back({layer_index, expert, e});
    const auto fold = [&](std::size_t first, std::size_t out, std::size_t in,
                          const kernels::lora_pair& pair) {
      std::vector<float> w(out * in);
      for (std::size_t o = 0; o < out; ++o) {
        for (std::size_t i = 0; i < in; ++i) {
          double sum = 0;
          for (std::size_t r = 0; r < rank; ++r)
            sum += double{pair.b[o * rank + r]} * double{pair.a[r * in + i]};
          w[o * in + i] =
              static_cast<float>(double{weights[first + o * in + i]} + double{e.scale} * sum);
        }
      }
      return w;
    };
    gate = fold(0, k_inner, k_hidden, e.gate);
    up = fold(widening, k_inner, k_hidden, e.up);
    down = fold(2 * widening, k_hidden, k_inner, e.down);
  }

  std::vector<double> row(const kernels::expert_shape& shape, std::span<const float> x) const {
    std::vector<double> y(k_hidden);
    kernels::reference_expert(shape,
                              {std::as_bytes(std::span(gate)), std::as_bytes(std::span(up)),
                               std::as_bytes(std::span(down))},
                              x, y);
    return y;
  }
};

struct adapter_layer_test : moe_layer_test {
  // Adapter 5 touches expert 1 in layer 4, adapter 9 expert 0 in layer 4.
  std::shared_ptr<folded> five, nine;
  adapter_set set;

  void SetUp() override {
    moe_layer_test::SetUp();
    five = std::make_shared<folded>(weights[1], 0, 1, 2, 0.1F);
    nine = std::make_shared<folded>(weights[0], 0, 0, 3, 0.9F);
    set = adapter_set().with(9, content_of(nine)).with(5, content_of(five));
    use(set);
  }
  static adapter_ptr content_of(const std::shared_ptr<folded>& f) { return {f, &f->content}; }
  void use(const adapter_set& adapters) {
    layer.install(std::make_shared<const adapter_set>(adapters));
  }
  transport::arrival arrival_with(const std::vector<std::array<std::int32_t, k_top_k>>& slots,
                                  const std::vector<std::int32_t>& adapters,
                                  kernels::return_mode mode = kernels::return_mode::partial,
                                  std::uint16_t layer_number = 4) {
    auto work = arrival(slots, mode, layer_number);
    for (std::size_t r = 0; r < adapters.size(); ++r)
      std::memcpy(records.data() + r * transport::record_stride(k_top_k) + 4, &adapters[r], 4);
    return work;
  }
  std::span<const float> x(std::size_t row) const {
    return std::span(hidden).subspan(row * k_hidden, k_hidden);
  }
  std::vector<std::byte> rows_given(std::size_t count) const {
    const auto bytes = std::span(half.region).first(count * shape.return_stride);
    return {bytes.begin(), bytes.end()};
  }
};

TEST_F(adapter_layer_test, computes_each_row_with_its_own_adapter_on_the_experts_it_touches) {
  ASSERT_EQ(layer.serve(arrival_with({{10, 11, -1}, {10, 11, -1}, {10, 11, -1}}, {-1, 9, 5})),
            status::ok);
  for (std::size_t r = 0; r < 3; ++r) {
    const auto a = r == 1 ? nine->row(backend->shape(), x(r)) : expert_row(0, r);
    const auto b = r == 2 ? five->row(backend->shape(), x(r)) : expert_row(1, r);
    for (std::size_t i = 0; i < k_hidden; ++i) {
      const double sum = 0.5 * a[i] + 0.25 * b[i];
      EXPECT_NEAR(given(r, i), sum, 2 * bound(sum)) << r;
    }
  }
  EXPECT_EQ(layer.counts().snapshot().counts, (std::vector<std::uint64_t>{3, 3, 0, 0, 0}));
}

TEST_F(adapter_layer_test, gives_exact_rows_and_leaves_other_layers_alone) {
  ASSERT_EQ(layer.serve(arrival_with({{11, 10, -1}}, {9}, kernels::return_mode::exact)),
            status::ok);
  const std::vector<std::vector<double>> rows{expert_row(1, 0), nine->row(backend->shape(), x(0))};
  for (std::size_t r = 0; r < 2; ++r) {
    for (std::size_t i = 0; i < k_hidden; ++i)
      EXPECT_NEAR(given(r, i), rows[r][i], 2 * bound(rows[r][i])) << r;
  }
  // Layer 6 holds expert 0 too, which adapter 9 touches in layer 4 only.
  ASSERT_EQ(layer.serve(arrival_with({{12, -1, -1}}, {9}, kernels::return_mode::exact, 6)),
            status::ok);
  for (std::size_t i = 0; i < k_hidden; ++i)
    EXPECT_NEAR(given(0, i), expert_row(0, 0)[i], bound(expert_row(0, 0)[i]));
}

TEST_F(adapter_layer_test, follows_the_expert_to_the_slot_that_holds_it) {
  // Layer 6, the second of the model, holds expert 0 in local slot 2.
  const auto third = std::make_shared<folded>(weights[0], 1, 0, 2, 0.4F);
  use(set.with(7, content_of(third)));
  ASSERT_EQ(layer.serve(arrival_with({{12, -1, -1}}, {7}, kernels::return_mode::exact, 6)),
            status::ok);
  const auto y = third->row(backend->shape(), x(0));
  for (std::size_t i = 0; i < k_hidden; ++i) EXPECT_NEAR(given(0, i), y[i], 2 * bound(y[i]));
}

TEST_F(adapter_layer_test, rows_without_one_keep_their_bits) {
  const std::vector<std::array<std::int32_t, k_top_k>> slots{{10, 11, -1}, {11, -1, 10}};
  ASSERT_EQ(layer.serve(arrival_with(slots, {-1, 9})), status::ok);
  const auto mixed = rows_given(1);
  use({});
  ASSERT_EQ(layer.serve(arrival_with(slots, {-1, -1})), status::ok);
  EXPECT_EQ(rows_given(1), mixed);
}

TEST_F(adapter_layer_test, a_row_that_names_an_adapter_it_lacks_makes_the_exchange_invalid) {
  EXPECT_EQ(layer.serve(arrival_with({{10, -1, -1}, {10, -1, -1}}, {5, 6})), status::invalid);
  EXPECT_EQ(half.rows, 0U);
  EXPECT_EQ(layer.serve(arrival_with({{10, -1, -1}}, {-2})), status::invalid);
  EXPECT_EQ(layer.serve(arrival_with({{99, -1, -1}}, {6})), status::invalid);  // no row of ours
  use(set.with(5, nullptr));
  EXPECT_EQ(layer.serve(arrival_with({{10, -1, -1}}, {5})), status::invalid);
  EXPECT_EQ(layer.serve(arrival_with({{10, -1, -1}}, {9})), status::ok);
}

TEST_F(adapter_layer_test, a_generation_that_comes_later_computes_with_them_too) {
  layer.install(table(2), 10);
  auto work = arrival_with({{11, -1, -1}}, {5});
  work.key.generation = generation_number{2};
  ASSERT_EQ(layer.serve(work), status::ok);
  const auto y = five->row(backend->shape(), x(0));
  for (std::size_t i = 0; i < k_hidden; ++i) EXPECT_NEAR(given(0, i), 0.5 * y[i], 2 * bound(y[i]));
}

TEST_F(moe_layer_test, serves_zero_rows) {
  EXPECT_EQ(layer.serve(arrival({}, kernels::return_mode::partial)), status::ok);
  EXPECT_EQ(half.rows, 0U);
}

TEST_F(moe_layer_test, keeps_an_old_generation_until_no_step_holds_it) {
  auto open = arrival({{10, -1, -1}}, kernels::return_mode::partial);
  open.key.chunk_count = 2;  // its last chunk never comes here
  ASSERT_EQ(layer.serve(open), status::ok);
  layer.install(table(2), 10);
  EXPECT_FALSE(layer.release(generation_number{2}));
  layer.detach(source_id{1});
  EXPECT_TRUE(layer.release(generation_number{2}));
  layer.attach(source_id{1});
  auto old = arrival({{10, -1, -1}}, kernels::return_mode::partial);
  EXPECT_EQ(layer.serve(old), status::stale_generation);
  EXPECT_EQ(half.detail, 2U);
}

TEST_F(moe_layer_test, refuses_sources_whose_rows_it_cannot_read) {
  EXPECT_TRUE(layer.check_source(shape).has_value());
  auto wide = shape;
  wide.hidden_stride = 48;
  EXPECT_EQ(layer.check_source(wide).error().text, "hidden_stride is 48; allowed: 32");
  auto many = shape;
  many.rows_max = k_rows + 1;
  EXPECT_EQ(layer.check_source(many).error().text, "rows_max is 17; allowed: 1 to 16");
  auto k = shape;
  k.top_k = 0;
  EXPECT_EQ(layer.check_source(k).error().text, "top_k is 0; allowed: 1 to 3");
}

}  // namespace
}  // namespace moetier::workers
