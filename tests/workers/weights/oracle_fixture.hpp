#pragma once
// One oracle checkpoint opened for a test: the weights through the product, and the vectors that
// another library computed. Thread: owner.

#include <filesystem>
#include <map>

#include "tests/schemas/file/scratch_folder.hpp"
#include "tests/workers/weights/naive_expert.hpp"
#include "workers/weights/checkpoint.hpp"

namespace moetier::workers {

inline const std::string k_oracles = std::string(MOETIER_SOURCE_DIR) + "/tests/data/oracles/";
inline constexpr std::size_t k_rows = 33;

inline std::vector<std::string> oracle_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(k_oracles)) {
    if (entry.is_directory()) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// A float or integer tensor as doubles; empty when there is none.
inline std::vector<double> tensor_values(const tensor_file& file, const std::string& name) {
  const tensor_info* const tensor = file.header().find(name);
  if (tensor == nullptr) return {};
  std::vector<std::byte> bytes(tensor->bytes());
  EXPECT_TRUE(file.read(*tensor, bytes));
  std::vector<double> values(bytes.size() * 8 / tensor->type->bits);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = tensor->type->element == dtype::i32 ? naive_at<std::int32_t>(bytes, i)
                                                    : naive_float(bytes, i, tensor->type->element);
  return values;
}

class oracle_fixture : public testing::TestWithParam<std::string> {
 protected:
  oracle_fixture() {
    const std::string folder = k_oracles + GetParam();
    auto weights = checkpoint::open(folder, {.routers = true});
    auto vectors = tensor_file::open(folder + "/vectors.safetensors");
    auto model = tensor_file::open(folder + "/model.safetensors");
    EXPECT_TRUE(weights) << sentence(weights);
    EXPECT_TRUE(vectors && model);
    if (!weights || !vectors || !model) return;
    weights_ = std::move(*weights);
    vectors_ = std::move(*vectors);
    file_ = std::move(*model);
  }

  const model_description& model() const { return weights_->model(); }
  std::vector<double> values(layer_id layer, const std::string& what) const {
    return tensor_values(*vectors_, "layer" + std::to_string(layer.value) + "." + what);
  }
  static std::span<const double> row_of(const std::vector<double>& all, std::size_t row) {
    const std::size_t width = all.size() / k_rows;
    return std::span(all).subspan(row * width, width);
  }

  // Largest difference of any row relative to that row's largest value.
  static double difference(const std::vector<double>& got, const std::vector<double>& wanted) {
    EXPECT_EQ(got.size(), wanted.size());
    double worst = 0;
    for (std::size_t row = 0; row < k_rows && got.size() == wanted.size(); ++row) {
      double most = 0;
      double scale = 1e-6;
      for (std::size_t i = 0; i < row_of(got, row).size(); ++i) {
        most = std::max(most, std::abs(row_of(got, row)[i] - row_of(wanted, row)[i]));
        scale = std::max(scale, std::abs(row_of(wanted, row)[i]));
      }
      worst = std::max(worst, most / scale);
    }
    return worst;
  }

  // The rows that the layer's experts read.
  std::vector<double> expert_rows(layer_id layer) const {
    if (!model().router_reads_hidden) return values(layer, "expert_input");
    const std::vector<double> hidden = values(layer, "hidden");
    if (model().hidden_size == model().router_width) return hidden;
    const std::vector<double> matrix = tensor_values(
        *file_, "backbone.layers." + std::to_string(layer.value) + ".mixer.fc1_latent_proj.weight");
    std::vector<double> rows;
    for (std::size_t row = 0; row < k_rows; ++row) {
      const auto z = naive_product(matrix, row_of(hidden, row));
      rows.insert(rows.end(), z.begin(), z.end());
    }
    return rows;
  }

  // Experts chosen and their weights, [k_rows, k]; llama4 has none in its vectors: the best logit.
  std::pair<std::vector<double>, std::vector<double>> choices(layer_id layer) const {
    std::vector<double> ids = values(layer, "ids");
    std::vector<double> weights = values(layer, "weights");
    const std::vector<double> logits = values(layer, "logits");
    for (std::size_t row = 0; row < k_rows && model().weight_at == weight_point::input; ++row) {
      const auto line = row_of(logits, row);
      const auto best = std::max_element(line.begin(), line.end());
      ids.push_back(static_cast<double>(best - line.begin()));
      weights.push_back(naive_sigmoid(*best));
    }
    return {ids, weights};
  }

  // What the routed experts of the layer must give, and with the shared ones.
  std::vector<double> wanted(layer_id layer) const {
    const bool latent = model().hidden_size != model().router_width;
    return values(layer, latent ? "output_latent" : "output" + ending());
  }
  std::vector<double> wanted_block(layer_id layer) const {
    return values(layer, "output_block" + ending());
  }
  std::string ending() const { return model().format.quant != quant_kind::none ? "_w" : ""; }

  std::unique_ptr<checkpoint> weights_;
  std::unique_ptr<tensor_file> vectors_;
  std::unique_ptr<tensor_file> file_;
};

}  // namespace moetier::workers
