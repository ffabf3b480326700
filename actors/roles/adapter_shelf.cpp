#include "actors/roles/adapter_shelf.hpp"

#include <algorithm>

#include "workers/weights/adapter_reader.hpp"

namespace moetier::roles {

adapter_shelf::adapter_shelf(const workers::checkpoint& files, std::size_t memory_max_bytes)
    : files_(files),
      memory_max_bytes_(memory_max_bytes),
      set_(std::make_shared<const workers::adapter_set>()) {}

expected<void> adapter_shelf::load(const control::held_adapter& wanted) {
  const auto held = set();
  std::size_t used = 0;
  for (const auto& entry : held->entries) used += entry.content->values.size() * sizeof(float);
  auto read = workers::read_adapter(wanted.path, files_.model(), files_.naming(),
                                    memory_max_bytes_ - std::min(used, memory_max_bytes_));
  if (!read) return tl::unexpected(read.error());
  replace(held->with(wanted.adapter, std::move(*read)));
  return {};
}

void adapter_shelf::drop(std::uint32_t adapter) {
  replace(set()->with(adapter, nullptr));
}

std::shared_ptr<const workers::adapter_set> adapter_shelf::set() const {
  const std::lock_guard lock(mutex_);
  return set_;
}

void adapter_shelf::replace(workers::adapter_set next) {
  auto made = std::make_shared<const workers::adapter_set>(std::move(next));
  const std::lock_guard lock(mutex_);
  set_ = std::move(made);
}

}  // namespace moetier::roles
