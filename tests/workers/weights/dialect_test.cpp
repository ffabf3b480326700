#include "workers/weights/dialect.hpp"

#include <gtest/gtest.h>

namespace moetier::workers {
namespace {

using kind = tensor_role::kind;
constexpr std::string_view k_stem = "model.layers.";

kind kind_of(std::string_view name) {
  return role_of(*find_dialect("qwen3_moe"), k_stem, name).what;
}

TEST(dialect, a_family_without_one_has_none) { EXPECT_EQ(find_dialect("gpt_oss"), nullptr); }

TEST(dialect, every_name_it_makes_it_understands) {
  for (const char* family : {"qwen3_moe", "mixtral"}) {
    const dialect& names = *find_dialect(family);
    for (const std::string_view stem : names.stems) {
      for (const projection part : {projection::gate, projection::up, projection::down}) {
        const auto role =
            role_of(names, stem, expert_tensor_name(names, stem, layer_id(12), 345, part));
        EXPECT_EQ(role.what, kind::expert);
        EXPECT_EQ(role.layer, 12u);
        EXPECT_EQ(role.expert, 345u);
        EXPECT_EQ(role.part, part);
      }
      EXPECT_EQ(role_of(names, stem, router_tensor_name(names, stem, layer_id(7))).what,
                kind::router);
    }
  }
}

TEST(dialect, mixtral_counts_gate_up_down_as_w1_w3_w2) {
  const dialect& names = *find_dialect("mixtral");
  EXPECT_EQ(expert_tensor_name(names, k_stem, layer_id(0), 1, projection::gate),
            "model.layers.0.block_sparse_moe.experts.1.w1.weight");
  EXPECT_EQ(expert_tensor_name(names, k_stem, layer_id(0), 1, projection::up),
            "model.layers.0.block_sparse_moe.experts.1.w3.weight");
  EXPECT_EQ(expert_tensor_name(names, k_stem, layer_id(0), 1, projection::down),
            "model.layers.0.block_sparse_moe.experts.1.w2.weight");
}

TEST(dialect, other_tensors_are_foreign) {
  for (const char* name :
       {"model.norm.weight", "model.layers.0.self_attn.q_proj.weight",
        "model.layers.0.mlp.gate_proj.weight", "model.layers.00.mlp.experts.0.up_proj.weight",
        "model.layers.x.mlp.gate.weight", "model.layers.", "model.layers.3", "",
        "mtp.layers.0.mlp.experts.0.up_proj.weight", "model.layers.99999999999.mlp.gate.weight"})
    EXPECT_EQ(kind_of(name), kind::foreign) << name;
}

TEST(dialect, a_stranger_among_the_experts_is_seen) {
  for (const char* name :
       {"model.layers.0.mlp.experts.gate_up_proj", "model.layers.0.mlp.experts.0.w1.weight",
        "model.layers.0.mlp.experts.0.up_proj.weight_scale_inv", "model.layers.0.mlp.experts.",
        "model.layers.0.mlp.experts.01.up_proj.weight",
        "model.layers.0.mlp.experts.-1.up_proj.weight",
        "model.layers.0.mlp.experts.4294967296.up_proj.weight"})
    EXPECT_EQ(kind_of(name), kind::unknown_expert) << name;
}

}  // namespace
}  // namespace moetier::workers
