#pragma once
// What the methods are made of: which score, which selection key, which weight. The row pipeline
// (score, drop groups, choose, weigh) reads this table and knows no method by name. Thread: any
// (constants).

#include "schemas/model/routing_rule.hpp"

namespace moetier::kernels {

enum class score_kind : std::uint8_t { none, sigmoid, root_softplus, softmax };

enum class weight_kind : std::uint8_t {
  none,            // the method is refused
  score,           // s·f
  share,           // s/(sum s + epsilon)·f, or s·f where the rule does not renormalise
  floored_share,   // s/max(sum s, epsilon)
  chosen_softmax,  // softmax over the chosen logits, times the expert's scale
  power_norm,      // p/(sum p^power)^(1/power)
  near_softmax,    // softmax over what is near the best left, for each position
  table,           // from a table, or 1
};

enum class group_kind : std::uint8_t { none, pairs, largest };  // a group's score from its keys

struct method_form {
  score_kind score = score_kind::none;
  weight_kind weight = weight_kind::none;
  bool biased = false;  // a bias may be added to the key
  group_kind groups = group_kind::none;
  bool scaled = false;    // f may be other than 1
  bool may_keep = false;  // renormalise = false is another rule
};

const method_form& form_of(routing_method method) noexcept;

}  // namespace moetier::kernels
