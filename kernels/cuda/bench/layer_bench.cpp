#include "kernels/cuda/bench/layer_bench.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include <poll.h>

#include "kernels/cuda/bench/clock_mark.hpp"
#include "kernels/cuda/bench/expert_oracle.hpp"
#include "kernels/cuda/bench/random_page.hpp"
#include "kernels/cuda/bench/sm90_read_probe.hpp"
#include "kernels/cuda/sm90_page.hpp"
#include "schemas/base/assert.hpp"

namespace moetier::kernels::cuda::bench {
namespace {

constexpr std::uint32_t k_oracle_rows = 24;
constexpr std::uint32_t k_eager_repeats = 5;

// Of a whole layer with bf16 out, against an oracle that quantises where the format does.
constexpr double k_fp8_norm_max = 1e-2;
constexpr double k_bf16_norm_max = 4e-3;
constexpr double k_bf16_worst_max = 3e-2;

double from_bf16(std::uint16_t bits) {
  return double{std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16)};
}

std::vector<std::uint32_t> sampled_rows(std::uint32_t rows) {
  const std::uint32_t count = std::min(rows, k_oracle_rows);
  std::vector<std::uint32_t> sampled;
  for (std::uint64_t i = 0; i < count; ++i)
    sampled.push_back(static_cast<std::uint32_t>(i * rows / count));
  return sampled;
}

// Differences from the oracle, over all rows seen.
class error_sum final {
 public:
  void add(std::span<const std::uint16_t> out, std::span<const double> truth) {
    for (std::size_t n = 0; n < truth.size(); ++n) {
      const double e = std::abs(from_bf16(out[n]) - truth[n]);
      errors_ += e * e;
      squares_ += truth[n] * truth[n];
      largest_ = e <= largest_ ? largest_ : e;  // a NaN stays
    }
    count_ += truth.size();
  }
  double norm() const { return std::sqrt(errors_ / std::max(squares_, 1e-300)); }
  double worst() const {
    return largest_ / std::sqrt(std::max(squares_, 1e-300) / static_cast<double>(count_));
  }

 private:
  double errors_ = 0;
  double squares_ = 0;
  double largest_ = 0;
  std::size_t count_ = 0;
};

// One case on the device: its memory, and what can be enqueued of it.
class case_run final {
 public:
  case_run(bench_stream& stream, const ExpertLayer& layer, const gemm_shape& shape,
           std::span<std::byte* const> pages, const layer_case& wanted)
      : stream_(stream),
        layer_(layer),
        shape_(shape),
        layout_(page_layout_of(shape)),
        pages_(pages),
        case_(wanted),
        slots_(static_cast<std::uint32_t>(pages.size())),
        row_bytes_(std::size_t{shape.hidden_size} * 2),
        rows_(stream.allocate(wanted.rows * row_bytes_)),
        out_(stream.allocate(wanted.rows * row_bytes_)),
        slot_ids_(stream.allocate(entries() * sizeof(std::int32_t))),
        weights_(stream.allocate(entries() * sizeof(float))),
        tables_(stream.allocate(pages.size() * wanted.layers * sizeof(std::byte*))),
        active_(stream.allocate((pages.size() + 1) * sizeof(std::uint32_t))),
        words_(stream.allocate(2 * sizeof(std::uint32_t))),
        sink_(stream.allocate(stream.facts().size.multiprocessors * sizeof(std::uint32_t))),
        clocks_(stream.allocate(2 * k_clock_readings * sizeof(clock_reading))),
        workspace_(stream.allocate(
            layer.workspace_bytes({.rows_cap = wanted.rows, .k_in = wanted.k, .slots = slots_}))) {
    stream_.take(fill_rows(rows_.data(), std::uint64_t{wanted.rows} * shape.hidden_size,
                           wanted.seed + 77, stream_.stream()));
    stream_.upload(words_, std::vector<std::uint32_t>{wanted.rows, 0});
    stream_.take(layer_.init_workspace(workspace_.span(), stream_.stream()));
  }

  // What a batch needs on the device, its pages rotated from layer to layer, and its grouping.
  void load(const layer_batch& batch) {
    MOETIER_ASSERT(batch.slot_ids.size() == entries() && batch.weights.size() == entries());
    std::vector<const std::byte*> tables(pages_.size() * case_.layers, pages_.front());
    std::vector<std::uint32_t> active{static_cast<std::uint32_t>(batch.active.size())};
    for (std::size_t rank = 0; rank < batch.active.size(); ++rank) {
      active.push_back(batch.active[rank]);
      for (std::size_t l = 0; l < case_.layers; ++l)
        tables[l * slots_ + batch.active[rank]] =
            pages_[(l * batch.active.size() + rank) % pages_.size()];
    }
    stream_.upload(slot_ids_, batch.slot_ids);
    stream_.upload(weights_, batch.weights);
    stream_.upload(active_, active);
    stream_.upload(tables_, tables);
    group();
  }

  void group() { stream_.take(layer_.group(call(0), stream_.stream())); }
  void group_often() {
    for (std::uint32_t l = 0; l < case_.layers; ++l) group();
  }
  void compute(std::uint32_t l) { stream_.take(layer_.compute(call(l), stream_.stream())); }
  void compute_all() {
    for (std::uint32_t l = 0; l < case_.layers; ++l) compute(l);
  }
  void read_all() {
    for (std::uint32_t l = 0; l < case_.layers; ++l) {
      stream_.take(read_pages({.pages = call(l).pages,
                               .active = active_.as<std::uint32_t>(),
                               .fc1 = layout_.fc1,
                               .fc1_tiles = std::uint64_t{layout_.fc1_strips} * layout_.fc1_blocks,
                               .fc2 = layout_.fc2,
                               .fc2_tiles = std::uint64_t{layout_.fc2_strips} * layout_.fc2_blocks,
                               .sink = sink_.as<std::uint32_t>()},
                              stream_.facts().size, stream_.stream()));
    }
  }

  // us of one layer by graph replay, and the clock meanwhile.
  double layer_us(const bench_graph& graph) {
    auto* const before = clocks_.as<clock_reading>();
    stream_.fill(clocks_.span(), 0);
    stream_.replay(graph);
    stream_.take(mark_clocks(before, stream_.facts().size, stream_.stream()));
    const double us = stream_.enqueue_us([&] { stream_.replay(graph); });
    stream_.take(mark_clocks(before + k_clock_readings, stream_.facts().size, stream_.stream()));
    return us / case_.layers;
  }
  double last_mhz() {
    const auto readings =
        stream_.download(clocks_.as<clock_reading>(), std::size_t{2} * k_clock_readings);
    const std::span all(readings);
    return mhz_between(all.first(k_clock_readings), all.subspan(k_clock_readings));
  }

  // Adds what one layer of `batch`, computed into poisoned memory, differs from the oracle.
  void compare(const layer_batch& batch, error_sum& into) {
    const std::vector<std::uint32_t> sampled = sampled_rows(case_.rows);
    const std::size_t hidden = shape_.hidden_size;
    const std::size_t mid_columns = std::size_t{case_.k} * shape_.intermediate_size;
    const device_block numbers = stream_.allocate(sampled.size() * sizeof(std::uint32_t));
    const device_block x = stream_.allocate(sampled.size() * hidden * sizeof(double));
    const device_block mid = stream_.allocate(sampled.size() * mid_columns * sizeof(double));
    const device_block truth = stream_.allocate(sampled.size() * hidden * sizeof(double));
    load(batch);
    stream_.upload(numbers, sampled);
    stream_.fill(out_.span(), 0xFF);
    compute(0);
    stream_.take(run_oracle(
        {.shape = shape_,
         .layout = layout_,
         .activation = shape_.bias ? gemm_activation::swiglu_bias : gemm_activation::swiglu,
         .pages = call(0).pages,
         .rows = rows_.data(),
         .slot_ids = slot_ids_.as<std::int32_t>(),
         .weights = weights_.as<float>(),
         .k = case_.k,
         .sampled = numbers.as<std::uint32_t>(),
         .samples = static_cast<std::uint32_t>(sampled.size()),
         .x = x.as<double>(),
         .mid = mid.as<double>(),
         .out = truth.as<double>()},
        stream_.stream()));
    const auto expected_rows = stream_.download(truth.as<double>(), sampled.size() * hidden);
    for (std::size_t s = 0; s < sampled.size(); ++s) {
      const auto row = stream_.download(out_.as<std::uint16_t>() + sampled[s] * hidden, hidden);
      into.add(row, std::span(expected_rows).subspan(s * hidden, hidden));
    }
  }

  std::uint32_t status() { return stream_.download(words_.as<std::uint32_t>(), 2)[1]; }
  std::string launch_text() const { return layer_.launch_text(call(0)); }

 private:
  std::size_t entries() const { return std::size_t{case_.rows} * case_.k; }

  layer_call call(std::uint32_t l) const {
    return {.rows = rows_.data(),
            .row_pitch_bytes = row_bytes_,
            .row_as = row_type::bf16,
            .rows_live = words_.as<std::uint32_t>(),
            .rows_cap = case_.rows,
            .k_in = case_.k,
            .slot_ids = slot_ids_.as<std::int32_t>(),
            .weights = weights_.as<float>(),
            .pages = tables_.as<const std::byte*>() + std::size_t{l} * slots_,
            .slots = slots_,
            .mode = return_mode::partial,
            .out = out_.data(),
            .out_pitch_bytes = row_bytes_,
            .out_as = out_type::bf16,
            .rows_per_slot = std::max(1U, case_.rows * case_.k / slots_),
            .workspace = workspace_.span(),
            .status = words_.as<std::uint32_t>() + 1};
  }

  bench_stream& stream_;
  const ExpertLayer& layer_;
  gemm_shape shape_;
  page_layout layout_;
  std::span<std::byte* const> pages_;
  const layer_case& case_;
  std::uint32_t slots_;
  std::size_t row_bytes_;
  device_block rows_;
  device_block out_;
  device_block slot_ids_;
  device_block weights_;
  device_block tables_;  // [layers][slots]: pages
  device_block active_;  // [0] = how many, then slots
  device_block words_;   // rows_live, status
  device_block sink_;
  device_block clocks_;  // before and after
  device_block workspace_;
};

oracle_verdict verdict_of(const error_sum& errors, gemm_format format, std::uint32_t rows) {
  const bool fp8 = format == gemm_format::fp8;
  oracle_verdict v{.norm = errors.norm(),
                   .worst = errors.worst(),
                   .norm_max = fp8 ? k_fp8_norm_max : k_bf16_norm_max,
                   .worst_max = fp8 ? 0 : k_bf16_worst_max,
                   .rows = rows};
  v.pass = v.norm <= v.norm_max && (v.worst_max == 0 || v.worst <= v.worst_max);
  return v;
}

}  // namespace

layer_bench::layer_bench(bench_stream& stream, const ExpertLayer& layer)
    : stream_(stream), layer_(layer), shape_(gemm_shape_of(layer.shape())) {}

expected<std::unique_ptr<layer_bench>> layer_bench::open(bench_stream& stream,
                                                         const ExpertLayer& layer,
                                                         std::uint32_t slots, std::uint64_t seed) {
  std::unique_ptr<layer_bench> made(new layer_bench(stream, layer));
  const page_layout layout = page_layout_of(made->shape_);
  if (layer.page_bytes() != layout.bytes)
    return fail(
        reason::backend_unresolved,
        std::string(layer.identity()) + " has pages of another layout than the bench fills");
  const std::uint64_t pitch = layout.bytes;
  if (slots * pitch > stream.free_bytes())
    return fail(reason::memory_insufficient, "the bench's pages", slots * pitch,
                stream.free_bytes());
  made->pool_ = stream.allocate(slots * pitch);
  const bool bias_form = layer.shape().activation == activation_kind::swiglu_bias;
  for (std::uint64_t p = 0; p < slots && stream.ok(); ++p) {
    made->pages_.push_back(made->pool_.data() + p * pitch);
    stream.take(fill_page({.shape = made->shape_,
                           .layout = layout,
                           .alpha = bias_form ? 1.702F : 0.0F,
                           .beta = bias_form ? 1.0F : 0.0F,
                           .limit = bias_form ? 7.0F : 0.0F,
                           .page = made->pages_.back(),
                           .seed = (seed << 32) + p * 16},
                          stream.stream()));
  }
  stream.wait();
  if (!stream.ok()) return tl::unexpected(stream.failed("filling pages"));
  return made;
}

expected<layer_figures> layer_bench::measure(const layer_case& wanted) {
  MOETIER_ASSERT(!wanted.batches.empty() && wanted.rows > 0 && wanted.layers > 0);
  case_run run(stream_, layer_, shape_, pages_, wanted);
  run.load(wanted.batches.front());
  const bench_graph layers = stream_.capture([&] { run.compute_all(); });
  const bench_graph probe = stream_.capture([&] { run.read_all(); });
  const bench_graph grouping = stream_.capture([&] { run.group_often(); });
  if (!stream_.ok()) return tl::unexpected(stream_.failed("capturing the layer"));

  // Layer and probe take turns over all batches, `repeat` times.
  std::vector<double> layer_us, probe_us, eager_us, sort_us, mhz;
  const auto batches = static_cast<double>(wanted.batches.size());
  for (std::uint32_t i = 0; i < wanted.repeat && stream_.ok(); ++i) {
    double layer_sum = 0;
    double probe_sum = 0;
    for (const layer_batch& batch : wanted.batches) {
      run.load(batch);
      layer_sum += run.layer_us(layers);
      probe_sum += stream_.replay_us(probe) / wanted.layers;
    }
    mhz.push_back(run.last_mhz());
    layer_us.push_back(layer_sum / batches);
    probe_us.push_back(probe_sum / batches);
  }

  // After rests, then launch by launch, then the grouping alone.
  std::vector<double> rested_us;
  const std::uint32_t rests = wanted.rows >= k_rested_rows_min ? k_eager_repeats : 0;
  for (std::uint32_t i = 0; i < rests && stream_.ok(); ++i) {
    ::poll(nullptr, 0, k_rest_ms);  // the host waits, the device idles
    rested_us.push_back(run.layer_us(layers));
  }
  for (std::uint32_t i = 0; i < k_eager_repeats && stream_.ok(); ++i)
    eager_us.push_back(stream_.enqueue_us([&] { run.compute_all(); }) / wanted.layers);
  for (std::uint32_t i = 0; i < wanted.repeat && stream_.ok(); ++i)
    sort_us.push_back(stream_.replay_us(grouping) / wanted.layers);

  // The oracle on the first and the last batch.
  error_sum errors;
  run.compare(wanted.batches.front(), errors);
  run.compare(wanted.batches.back(), errors);
  const std::uint32_t status = run.status();
  if (!stream_.ok()) return tl::unexpected(stream_.failed("measuring the layer"));
  if (status != 0)
    return fail(reason::internal_error,
                "the layer's status word is " + std::to_string(status) + ", not 0");
  // Each launch alone, last: a launch that waits for another one's work would fail here.
  launch_stages stages = stream_.stages_of([&] { run.compute_all(); }, wanted.layers);
  if (run.status() != 0) stages = {.each = {}, .note = "a launch cannot run alone"};
  return layer_figures{
      .layer = spread_of(std::move(layer_us)),
      .probe = spread_of(std::move(probe_us)),
      .eager_us = spread_of(std::move(eager_us)).median,
      .rested_us = rested_us.empty() ? 0 : spread_of(std::move(rested_us)).median,
      .sort_us = spread_of(std::move(sort_us)).median,
      .sm_mhz = spread_of(std::move(mhz)).median,
      .stages = std::move(stages),
      .oracle = verdict_of(errors, shape_.format, 2 * std::min(wanted.rows, k_oracle_rows)),
      .launch = run.launch_text()};
}

}  // namespace moetier::kernels::cuda::bench
