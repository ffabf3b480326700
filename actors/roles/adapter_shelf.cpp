#include "actors/roles/adapter_shelf.hpp"

#include <algorithm>

#include "workers/weights/adapter_reader.hpp"

namespace moetier::roles {

adapter_shelf::adapter_shelf(const workers::checkpoint& files, std::size_t memory_max_bytes)
    : files_(files),
      memory_max_bytes_(memory_max_bytes),
      set_(std::make_shared<const workers::adapter_set>()) {}

expected<void> adapter_shelf::load(const control::held_adapter& wanted) {
  std::size_t used = 0;
  for (const auto& entry : set_->entries) used += entry.content->values.size() * sizeof(float);
  auto read = workers::read_adapter(wanted.path, files_.model(), files_.naming(),
                                    memory_max_bytes_ - std::min(used, memory_max_bytes_));
  if (!read) return tl::unexpected(read.error());
  set_ = std::make_shared<const workers::adapter_set>(set_->with(wanted.adapter, std::move(*read)));
  return {};
}

void adapter_shelf::drop(std::uint32_t adapter) {
  set_ = std::make_shared<const workers::adapter_set>(set_->with(adapter, nullptr));
}

}  // namespace moetier::roles
