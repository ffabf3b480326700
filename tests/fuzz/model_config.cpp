// config.json of a model directory. What is understood must describe a model that can be served.

#include "schemas/model/config.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "schemas/base/limits.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace moetier::fuzz {

void run(std::span<const std::uint8_t> bytes) {
  const auto model = parse_config(text_of(bytes), "config.json");
  if (!model) return;
  check(model->hidden_size > 0 && model->intermediate_size > 0, "a matrix of no size");
  check(model->experts > 0 && model->top_k > 0 && model->top_k <= model->columns(),
        "a choice that nobody can make");
  check(!model->moe_layers.empty() && model->moe_layers.size() <= model->layers_total,
        "more MoE layers than layers, or none");
  check(std::is_sorted(model->moe_layers.begin(), model->moe_layers.end()), "layers out of order");
}

// Configurations of every family that the tests have.
std::vector<input> seeds() {
  std::vector<input> all;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(MOETIER_SOURCE_DIR "/tests/data")) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".json") || name.find("config") == std::string::npos) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    input seed(std::istreambuf_iterator<char>(file), {});
    if (seed.size() <= 16 * 1024) all.push_back(std::move(seed));
  }
  return all;
}

}  // namespace moetier::fuzz
