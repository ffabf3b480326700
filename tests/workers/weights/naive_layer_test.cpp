// The numbers behind the names: a plain double-precision MoE layer over what the checkpoint loads
// must give the outputs that another library computed. A swapped gate and up, a transposed matrix,
// a wrong expert or a wrong routing method does not survive this.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "tests/schemas/file/scratch_folder.hpp"
#include "workers/weights/checkpoint.hpp"

namespace moetier::workers {
namespace {

const std::string k_root = MOETIER_SOURCE_DIR;

std::vector<double> widened(std::span<const std::byte> bytes, dtype element) {
  std::vector<double> values(bytes.size() / dtype_bytes(element));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (element == dtype::f32) {
      float x = 0;
      std::memcpy(&x, bytes.data() + 4 * i, 4);
      values[i] = x;
    } else {
      std::uint16_t x = 0;
      std::memcpy(&x, bytes.data() + 2 * i, 2);
      values[i] = element == dtype::bf16 ? f32_from_bf16(x) : f32_from_f16(x);
    }
  }
  return values;
}

// Row `row` of an f32 tensor, or all of it.
std::vector<double> tensor_values(const tensor_file& file, const std::string& name) {
  const tensor_info* const tensor = file.header().find(name);
  if (tensor == nullptr) {
    ADD_FAILURE() << "no tensor " << name;
    return {};
  }
  std::vector<std::byte> bytes(tensor->bytes());
  EXPECT_TRUE(file.read(*tensor, bytes));
  return widened(bytes, tensor->type->element);
}

// y = matrix x, matrix [rows, x.size()] row-major.
std::vector<double> product(std::span<const double> matrix, std::span<const double> x) {
  std::vector<double> y(matrix.size() / x.size());
  for (std::size_t r = 0; r < y.size(); ++r)
    y[r] = std::inner_product(x.begin(), x.end(), matrix.begin() + static_cast<long>(r * x.size()),
                              0.0);
  return y;
}

struct choice {
  std::size_t expert;
  double weight;
};

std::vector<choice> routed(const model_description& model, std::span<const double> logits) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  const auto exponential = [&](std::size_t e) { return std::exp(logits[e] - logits[order[0]]); };
  // default_softmax divides by the sum over all experts, the others by that over the chosen ones.
  const std::size_t summed =
      model.routing.method == routing_method::default_softmax ? order.size() : model.top_k;
  double sum = 0;
  for (std::size_t i = 0; i < summed; ++i) sum += exponential(order[i]);
  std::vector<choice> chosen;
  for (std::size_t i = 0; i < model.top_k; ++i)
    chosen.push_back({order[i], exponential(order[i]) / sum});
  return chosen;
}

struct expert_matrices {
  std::vector<double> gate, up, down;
};

class naive_layer final {
 public:
  naive_layer(checkpoint& weights, layer_id layer) : model_(weights.model()) {
    const std::size_t size = weights.projection_bytes();
    std::vector<std::byte> gate(size), up(size), down(size);
    for (std::uint16_t e = 0; e < model_.experts; ++e) {
      const auto loaded = weights.load(layer, expert_id(e), {.gate = gate, .up = up, .down = down});
      EXPECT_TRUE(loaded) << sentence(loaded);
      experts_.push_back({widened(gate, model_.format.stored), widened(up, model_.format.stored),
                          widened(down, model_.format.stored)});
    }
  }

  std::vector<double> output(std::span<const double> x, std::span<const choice> chosen) const {
    std::vector<double> sum(x.size(), 0.0);
    for (const choice& one : chosen) {
      const expert_matrices& expert = experts_[one.expert];
      std::vector<double> inner = product(expert.gate, x);
      const std::vector<double> linear = product(expert.up, x);
      for (std::size_t i = 0; i < inner.size(); ++i)
        inner[i] = inner[i] / (1.0 + std::exp(-inner[i])) * linear[i];
      const std::vector<double> y = product(expert.down, inner);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one.weight * y[i];
    }
    return sum;
  }

 private:
  const model_description& model_;
  std::vector<expert_matrices> experts_;
};

// The largest absolute difference to `output` over all rows of one layer's vectors.
double largest_error(checkpoint& weights, const tensor_file& vectors, const std::string& prefix,
                     layer_id layer) {
  const std::vector<double> hidden = tensor_values(vectors, prefix + "hidden");
  const std::vector<double> logits = tensor_values(vectors, prefix + "logits");
  const std::vector<double> wanted = tensor_values(vectors, prefix + "output");
  const naive_layer naive(weights, layer);
  const std::size_t width = weights.model().hidden_size;
  const std::size_t experts = weights.model().experts;
  double worst = 0;
  for (std::size_t row = 0; row < hidden.size() / width; ++row) {
    const auto chosen = routed(weights.model(), std::span(logits).subspan(row * experts, experts));
    const auto x = std::span(hidden).subspan(row * width, width);
    const auto y = std::span(wanted).subspan(row * width, width);
    const auto got = naive.output(x, chosen);
    for (std::size_t i = 0; i < width; ++i) worst = std::max(worst, std::abs(got[i] - y[i]));
  }
  return worst;
}

TEST(naive_layer, the_demos_twelve_vectors_come_out) {
  auto weights = checkpoint::open(k_root + "/deploy/demo/model", {.routers = true});
  ASSERT_TRUE(weights) << sentence(weights);
  auto vectors = tensor_file::open(k_root + "/deploy/demo/vectors/moe_vectors.safetensors");
  ASSERT_TRUE(vectors) << sentence(vectors);
  double worst = 0;
  for (const std::string domain : {"code", "novel", "scripture"}) {
    for (std::uint16_t l = 0; l < 4; ++l) {
      const std::string prefix = domain + ".layer" + std::to_string(l) + ".";
      const double error = largest_error(**weights, **vectors, prefix, layer_id(l));
      EXPECT_LE(error, 1e-5) << prefix;
      worst = std::max(worst, error);
    }
  }
  RecordProperty("largest_error", std::to_string(worst * 1e9) + "e-9");
}

TEST(naive_layer, the_demos_router_gives_the_logits) {
  auto weights = checkpoint::open(k_root + "/deploy/demo/model", {.routers = true});
  auto vectors = tensor_file::open(k_root + "/deploy/demo/vectors/moe_vectors.safetensors");
  ASSERT_TRUE(weights && vectors);
  const auto router = (*weights)->read_router(layer_id(2));
  ASSERT_TRUE(router) << sentence(router);
  const std::vector<double> matrix = widened(router->bytes, router->element);
  const std::vector<double> hidden = tensor_values(**vectors, "novel.layer2.hidden");
  const std::vector<double> logits = tensor_values(**vectors, "novel.layer2.logits");
  for (std::size_t row = 0; row < 64; ++row) {
    const auto got = product(matrix, std::span(hidden).subspan(row * 256, 256));
    for (std::size_t e = 0; e < got.size(); ++e)
      EXPECT_NEAR(got[e], logits[row * 32 + e], 1e-4) << "row " << row << " expert " << e;
  }
}

}  // namespace
}  // namespace moetier::workers
