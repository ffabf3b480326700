// Every family's files, bent by seeded mutations: what still loads must give the same experts, and
// everything else is a typed refusal. Nothing crashes, and no other bytes come out in silence. 40
// for each family, 1000 with MOETIER_FULL.

#include <cstdlib>
#include <filesystem>
#include <random>

#include "tests/workers/weights/raw_checkpoint.hpp"

namespace moetier::workers {
namespace {

using json = nlohmann::json;

const std::string k_oracles = std::string(MOETIER_SOURCE_DIR) + "/tests/data/oracles/";

int mutations() { return std::getenv("MOETIER_FULL") == nullptr ? 40 : 1000; }

std::vector<std::string> oracle_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(k_oracles)) {
    if (entry.is_directory()) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

struct outcome {
  model_description model;
  all_experts experts;
  routing_tables tables;
};

expected<outcome> open_all(const scratch_folder& folder) {
  auto weights = checkpoint::open(folder.path(), {.routers = true});
  if (!weights) return unexpected_error(weights.error());
  outcome all{.model = (*weights)->model(), .experts = {}, .tables = {}};
  auto tables = (*weights)->read_routing_tables();
  if (!tables) return unexpected_error(tables.error());
  all.tables = std::move(*tables);
  auto experts = load_all(**weights);
  if (!experts) return unexpected_error(experts.error());
  all.experts = std::move(*experts);
  return all;
}

// Keys whose absence means something by the family's own rules, so that a model without them is
// another model and no damaged one.
bool has_a_meaning_absent(const std::string& key) {
  for (const char* known :
       {"norm_topk_prob", "moe_renormalize", "n_shared_experts", "num_shared_experts"}) {
    if (key == known) return true;
  }
  return false;
}

class mutator final {
 public:
  mutator(const raw_checkpoint& original, std::uint64_t seed) : raw(original), random_(seed) {
    switch (random_() % 12) {
      case 0:
      case 1: drop_key(); break;
      case 2: change_type_of_value(); break;
      case 3:
      case 4: change_value(); break;
      case 5: rename_tensor(); break;
      case 6: change_shape(); break;
      case 7: change_dtype(); break;
      case 8: truncate(); break;
      case 9: add_expert(); break;
      case 10: drop_tensor(); break;
      case 11: poison(); break;
    }
  }

  void write(const scratch_folder& folder) const {
    folder.write("config.json", raw.config.dump());
    std::string file = raw.safetensors();
    if (cut_) file.resize(file.size() - std::min<std::size_t>(file.size(), *cut_));
    folder.write("model.safetensors", file);
  }

  raw_checkpoint raw;
  std::string what;          // for the failure's text
  std::string dropped;       // key
  bool must_fail = false;    // whatever else
  bool tables_count = true;  // the routing tables must be the same too
  bool same_model = false;   // the description must be the same

 private:
  template <class Map>
  auto any_of(Map& map) {
    return std::next(map.begin(), static_cast<long>(random_() % map.size()));
  }

  json& part() {
    const bool text = raw.config.contains("text_config") && random_() % 8 != 0;
    return text ? raw.config["text_config"] : raw.config;
  }

  void drop_key() {
    json& config = part();
    const std::string key = any_of(config).key();
    what = "config without " + key;
    dropped = key;
    same_model = !has_a_meaning_absent(key);
    config.erase(key);
  }

  void change_type_of_value() {
    json& config = part();
    auto at = any_of(config);
    what = "config " + at.key() + " of another type";
    const std::vector<json> values{"x", json::array({1, "y"}), json::object(), -3, 1e300, true};
    at.value() = values[random_() % values.size()];
  }

  void change_value() {
    json& config = part();
    auto at = any_of(config);
    json* value = &at.value();
    if (value->is_array() && !value->empty()) value = &(*value)[random_() % value->size()];
    what = "config " + at.key() + " of another value";
    if (value->is_number_integer()) {
      const std::vector<std::int64_t> steps{-1, 1, 2, 64, -32};
      *value = value->get<std::int64_t>() + steps[random_() % steps.size()];
    } else if (value->is_number()) {
      *value = value->get<double>() * 2 + 0.5;
    } else if (value->is_boolean()) {
      *value = !value->get<bool>();
    } else if (value->is_string()) {
      *value = value->get<std::string>() + "x";
    }
  }

  void rename_tensor() {
    auto node = raw.tensors.extract(any_of(raw.tensors));
    what = "tensor " + node.key() + " renamed";
    std::string& name = node.key();
    name[random_() % name.size()] = static_cast<char>('0' + random_() % 10);
    raw.tensors.insert(std::move(node));
    tables_count = false;
  }

  void change_shape() {
    raw_tensor& tensor = any_of(raw.tensors)->second;
    what = "a shape";
    if (tensor.shape.empty()) return;
    if (random_() % 2 == 0) {
      std::reverse(tensor.shape.begin(), tensor.shape.end());
    } else {
      tensor.shape[random_() % tensor.shape.size()] += 1 + random_() % 3;
    }
  }

  void change_dtype() {
    const std::map<std::string, std::vector<std::string>> others{
        {"BF16", {"F16", "I16", "U16"}},
        {"F32", {"I32", "U32"}},
        {"U8", {"I8", "F8_E4M3", "F8_E8M0"}},
        {"I8", {"U8", "F8_E5M2"}},
        {"F8_E4M3", {"F8_E5M2", "U8", "BOOL"}},
        {"F8_E8M0", {"U8", "F8_E4M3"}},
        {"I32", {"U32", "F32"}},
        {"I64", {"U64", "F64"}}};
    auto at = any_of(raw.tensors);
    const auto& list = others.at(at->second.type);
    what = at->first + " of another type";
    at->second.type = list[random_() % list.size()];
    tables_count = at->second.type != "F16";  // a bias may be of any float type
  }

  void truncate() {
    cut_ = 1 + random_() % 4000;
    what = "a file cut by " + std::to_string(*cut_);
    must_fail = true;
  }

  void add_expert() {
    // The first tensor of an expert 0, again under a number behind every router's columns: identity
    // experts may have tensors, which nobody computes with.
    for (const auto& [name, tensor] : raw.tensors) {
      const std::size_t at = name.find("experts.0.");
      if (at == std::string::npos || name.find("mtp") != std::string::npos) continue;
      std::string more = name;
      more.replace(at, 10, "experts.64.");
      raw.tensors[more] = tensor;
      what = "a tensor " + more;
      must_fail = true;
      return;
    }
    what = "no expert to add";
  }

  void drop_tensor() {
    auto at = any_of(raw.tensors);
    what = "no tensor " + at->first;
    tables_count = false;
    raw.tensors.erase(at);
  }

  // A number that is none among scales and biases.
  void poison() {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : raw.tensors) {
      const bool scale = name.find("experts") != std::string::npos &&
                         name.find("shared") == std::string::npos &&
                         name.find("scale") != std::string::npos;
      const bool bias = name.find("e_score_correction_bias") != std::string::npos ||
                        name.find("experts.down_proj_bias") != std::string::npos;
      if (scale || bias) names.push_back(name);
    }
    what = "nothing to poison";
    if (names.empty()) return;
    const std::string& name = names[random_() % names.size()];
    raw_tensor& tensor = raw.tensors.at(name);
    what = "a poisoned " + name;
    const std::size_t width = tensor.type == "F32" ? 4 : tensor.type == "BF16" ? 2 : 1;
    const std::size_t at = random_() % (tensor.bytes.size() / width) * width;
    for (std::size_t b = 0; b < width; ++b) tensor.bytes[at + b] = '\xff';
    must_fail = true;
  }

  std::mt19937_64 random_;
  std::optional<std::size_t> cut_;
};

class hostile_checkpoint_test : public testing::TestWithParam<std::string> {};

TEST_P(hostile_checkpoint_test, is_refused_or_gives_the_same_experts) {
  const raw_checkpoint original = raw_checkpoint::of(k_oracles + GetParam());
  const scratch_folder folder;
  original.write(folder);
  const auto wanted = open_all(folder);
  ASSERT_TRUE(wanted) << sentence(wanted);
  int refused = 0;
  for (int n = 0; n < mutations(); ++n) {
    auto seed = static_cast<std::uint64_t>(n);
    for (const char c : GetParam()) seed = seed * 131 + static_cast<unsigned char>(c);
    const mutator bent(original, seed);
    bent.write(folder);
    const auto got = open_all(folder);
    const std::string where = bent.what + ", mutation " + std::to_string(n);
    if (!got) {
      ++refused;
      EXPECT_NE(got.error().code, status::internal) << where << ": " << sentence(got);
      EXPECT_NE(got.error().code, status::ok) << where;
      EXPECT_LT(got.error().text.size(), 1200u) << where;
      continue;
    }
    EXPECT_FALSE(bent.must_fail) << where << " was taken";
    if (bent.same_model) {
      EXPECT_EQ(got->model, wanted->model) << where;
    }
    // Layers may have become fewer; what is there is the same.
    for (const auto& [place, bytes] : got->experts) {
      const auto at = wanted->experts.find(place);
      ASSERT_NE(at, wanted->experts.end()) << where;
      ASSERT_TRUE(bytes == at->second)
          << where << ": layer " << place.first << " expert " << place.second;
    }
    if (bent.tables_count && got->model == wanted->model) {
      EXPECT_EQ(got->tables, wanted->tables) << where;
    }
  }
  EXPECT_GE(refused, mutations() / 8);
}

INSTANTIATE_TEST_SUITE_P(families, hostile_checkpoint_test, testing::ValuesIn(oracle_names()),
                         [](const auto& family) { return family.param; });

}  // namespace
}  // namespace moetier::workers
