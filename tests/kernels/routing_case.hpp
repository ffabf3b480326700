#pragma once
// Routing of small rows for tests: the outcome as a value that compares in bits, and a call that
// runs every form of the row kernels and of the routing kernel and demands that all agree.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "kernels/backend.hpp"
#include "kernels/routing/route_rows.hpp"

namespace moetier::kernels {

struct routed {
  std::vector<std::int32_t> ids;
  std::vector<float> weights;
  std::vector<std::uint8_t> flags;
  std::string refusal;  // the error's text

  bool operator==(const routed& other) const {
    return ids == other.ids && flags == other.flags && refusal == other.refusal &&
           std::equal(weights.begin(), weights.end(), other.weights.begin(), other.weights.end(),
                      [](float a, float b) {
                        return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
                      });
  }
};

inline layer_routing biased(std::vector<float> bias) {
  layer_routing layer;
  layer.bias = std::move(bias);
  return layer;
}

inline layer_routing tabled(std::vector<std::uint16_t> table, std::uint32_t rows) {
  layer_routing layer;
  layer.table = std::move(table);
  layer.table_rows = rows;
  return layer;
}

inline std::vector<const row_kernels*> row_kernels_here() {
  const cpu_features features = detect_cpu_features();
  if (features.avx2 && features.fma) return {&k_row_kernels_scalar, &k_row_kernels_avx2};
  return {&k_row_kernels_scalar};
}

inline routed route_on(const row_kernels& rows, routing_kernel kernel, const routing_params& params,
                       const layer_routing& layer, const route_input& input,
                       bool flagging = false) {
  const std::size_t picks = std::size_t{input.tokens} * params.top_k;
  routed r{.ids = std::vector<std::int32_t>(picks, -7),
           .weights = std::vector<float>(picks, -7.0F),
           .flags = std::vector<std::uint8_t>(flagging ? input.tokens : 0, 7),
           .refusal = {}};
  const auto done = route_rows(rows, kernel, params, layer, input,
                               {.ids = r.ids, .weights = r.weights, .flags = r.flags});
  return done ? r : routed{.ids = {}, .weights = {}, .flags = {}, .refusal = done.error().text};
}

// Every form; all must agree in bits. Rows of logits are dense f32.
inline routed route_every_form(const routing_params& params, const std::vector<float>& logits,
                               const layer_routing& layer = {},
                               std::span<const std::int32_t> token_ids = {},
                               bool flagging = false) {
  EXPECT_TRUE(check_routing(params));
  EXPECT_TRUE(check_layer(params, layer));
  const route_input input{.logits = logits.data(),
                          .pitch_bytes = params.columns() * sizeof(float),
                          .tokens = static_cast<std::uint32_t>(logits.size() / params.columns()),
                          .token_ids = token_ids};
  const routed first =
      route_on(k_row_kernels_scalar, routing_kernel::generic, params, layer, input, flagging);
  const routing_kernel chosen = choose_kernel(params, layer.hashed()).kernel;
  for (const row_kernels* rows : row_kernels_here()) {
    for (const routing_kernel kernel : {routing_kernel::generic, chosen})
      EXPECT_EQ(route_on(*rows, kernel, params, layer, input, flagging), first)
          << routing_method_name(params.rule.method) << " E " << params.columns() << " k "
          << params.top_k << " " << routing_kernel_name(kernel);
  }
  return first;
}

}  // namespace moetier::kernels
