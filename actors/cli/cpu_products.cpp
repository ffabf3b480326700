// One product of bf16 weights and f32 rows, packing of rows and writing of results included, beside
// a peer that gets the same rows and the same weights as f32, packed as it likes them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "actors/cli/cpu_measure.hpp"
#include "actors/cli/cpu_samples.hpp"
#include "actors/cli/random_expert.hpp"
#include "kernels/cpu/panel_gemm.hpp"
#include "schemas/base/dtype.hpp"

namespace moetier::cli {
namespace {

// The weights as stored, as f32, and what rows times them must give.
struct product_case {
  std::vector<std::byte> stored;     // bf16 [outputs, depth]
  std::vector<float> matrix;         // the same values
  std::vector<float> in;             // [rows, depth]
  std::vector<double> truth, sizes;  // [rows, outputs]: sums, and sums of sizes of products
};

product_case make_case(const product_size& size, std::uint32_t rows, std::uint64_t seed) {
  product_case c;
  const std::size_t weights = std::size_t{size.outputs} * size.depth;
  c.matrix = random_values(weights, 1.0F / std::sqrt(static_cast<float>(size.depth)), seed);
  c.in = random_values(std::size_t{rows} * size.depth, 1.0F, seed + 1);
  c.stored.resize(weights * sizeof(std::uint16_t));
  for (std::size_t i = 0; i < weights; ++i) {
    const std::uint16_t bits = bf16_from_f32(c.matrix[i]);
    std::memcpy(&c.stored[i * sizeof bits], &bits, sizeof bits);
    c.matrix[i] = f32_from_bf16(bits);
  }
  c.truth.resize(std::size_t{rows} * size.outputs);
  c.sizes.resize(c.truth.size());
  for (std::size_t n = 0; n < size.outputs; ++n) {
    const float* const w = &c.matrix[n * size.depth];
    for (std::size_t r = 0; r < rows; ++r) {
      const float* const x = &c.in[r * size.depth];
      double sum = 0;
      double whole = 0;
      for (std::size_t k = 0; k < size.depth; ++k) {
        const double product = double{w[k]} * double{x[k]};
        sum += product;
        whole += std::abs(product);
      }
      c.truth[r * size.outputs + n] = sum;
      c.sizes[r * size.outputs + n] = whole;
    }
  }
  return c;
}

// Of the first `count` elements.
cpu_oracle judge(const product_case& c, std::span<const float> out, std::size_t count) {
  double errors = 0;
  double squares = 0;
  cpu_oracle judged;
  for (std::size_t i = 0; i < count; ++i) {
    const double error = std::abs(double{out[i]} - c.truth[i]);
    errors += error * error;
    squares += c.truth[i] * c.truth[i];
    const double of_sizes = error / c.sizes[i];
    if (std::isnan(of_sizes) || of_sizes > judged.worst) judged.worst = of_sizes;
  }
  judged.norm = std::sqrt(errors / std::max(squares, 1e-300));
  return judged;
}

// A peer's product in one form, over weights of its own.
struct peer_form {
  std::string name;
  std::unique_ptr<peer_product> product;
  std::unique_ptr<weight_ring> ring;
  double norm = 0;
  std::vector<double> cold_us{}, warm_us{};
};

std::vector<peer_form> open_forms(const moetier_gemm_peer* peer, const product_case& c,
                                  const product_size& size, std::uint32_t rows,
                                  std::size_t ring_bytes, std::span<float> out) {
  std::vector<peer_form> forms;
  for (std::uint32_t form = 0; peer != nullptr && form < peer->forms(); ++form) {
    auto product = peer_product::open(*peer, form, rows, size.outputs, size.depth);
    if (product == nullptr) continue;
    auto ring = std::make_unique<weight_ring>((product->packed_bytes() + 63) / 64 * 64, ring_bytes);
    product->pack(c.matrix, ring->first());
    ring->spread();
    product->run(ring->copy(0), c.in.data(), out.data());
    const cpu_oracle judged = judge(c, out, std::size_t{rows} * size.outputs);
    if (!judged.pass()) continue;
    forms.push_back({peer->form_name(form), std::move(product), std::move(ring), judged.norm});
  }
  return forms;
}

void time_form(peer_form& form, const product_case& c, std::span<float> out) {
  const auto timed = [&](std::size_t copy) {
    const double began = thread_us();
    form.product->run(form.ring->copy(copy), c.in.data(), out.data());
    return thread_us() - began;
  };
  std::size_t copy = 0;
  for (std::uint32_t i = 0; i < k_cold_per_round; ++i)
    form.cold_us.push_back(timed(copy = form.ring->next()));
  for (std::uint32_t i = 0; i < k_warm_per_round; ++i) form.warm_us.push_back(timed(copy));
}

peer_figures best_of(std::vector<peer_form>& forms) {
  peer_figures best;
  for (peer_form& form : forms) {
    const spread_of cold = spread_of_samples(std::move(form.cold_us));
    if (!best.form.empty() && cold.median >= best.cold_us.median) continue;
    best = {.form = form.name,
            .cold_us = cold,
            .warm_us = spread_of_samples(std::move(form.warm_us)),
            .norm = form.norm};
  }
  return best;
}

}  // namespace

std::vector<cpu_figures> measure_products(const product_size& size,
                                          std::span<const std::uint32_t> rows,
                                          const moetier_gemm_peer* peer,
                                          const cpu_measure_options& options) {
  const pinned_thread pinned;
  const std::uint32_t most = *std::max_element(rows.begin(), rows.end());
  const product_case c = make_case(size, most, options.seed);
  const kernels::panel_gemm gemm(kernels::k_panel_kernels_avx2, {}, size.outputs, size.depth);
  weight_ring ring(gemm.weight_bytes(), options.ring_bytes);
  gemm.pack(c.stored, ring.first());
  ring.spread();
  aligned_bytes workspace(gemm.workspace_bytes(most));
  std::vector<float> all(std::size_t{most} * size.outputs);
  std::vector<float> out(all.size());
  gemm.run(ring.copy(0), c.in.data(), most, all.data(), workspace.span());
  cold_sampler sampler(kernels::k_cpu_ceiling_probes_avx2, ring, gemm.weight_bytes());

  std::vector<cpu_figures> figures;
  for (const std::uint32_t count : rows) {
    const std::size_t results = std::size_t{count} * size.outputs;
    cpu_figures f;
    f.what = "product";
    f.size = size;
    f.rows = count;
    f.flops = 2.0 * count * size.outputs * size.depth;
    f.weight_bytes = static_cast<double>(gemm.weight_bytes());
    f.aim = aim_of_product(size, count);
    const auto run = [&](const std::byte* weights) {
      gemm.run(weights, c.in.data(), count, out.data(), workspace.span());
    };
    std::vector<peer_form> forms = open_forms(peer, c, size, count, options.ring_bytes, out);
    std::fill(out.begin(), out.end(), std::nanf(""));
    run(ring.copy(0));
    f.oracle = judge(c, out, results);
    f.oracle.same_bits = std::memcmp(out.data(), all.data(), results * sizeof(float)) == 0;
    cpu_samples samples;
    while (samples.cold_count() < options.samples) {
      samples.take_round(sampler, ring, f.flops, run);
      for (peer_form& form : forms) time_form(form, c, out);
    }
    samples.give(f);
    f.peer = best_of(forms);
    figures.push_back(std::move(f));
  }
  return figures;
}

}  // namespace moetier::cli
