#include "eplb/load/row_mask.hpp"

#include "schemas/base/assert.hpp"

namespace moetier::eplb {

void selection_counts::add(row_kind kind, std::uint32_t top_k, std::span<const std::int32_t> ids) {
  MOETIER_ASSERT(top_k > 0 && ids.size() % top_k == 0);
  if (kind != row_kind::live) return;
  for (const std::int32_t id : ids) {
    if (id == -1) {
      ++refused_;
    } else if (id < 0 || static_cast<std::size_t>(id) >= by_expert_.size()) {
      ++invalid_;
    } else {
      ++by_expert_[static_cast<std::size_t>(id)];
      ++counted_;
    }
  }
}

}  // namespace moetier::eplb
