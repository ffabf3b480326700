#pragma once
// The adapters that this worker has read, in the model's own names. Sets are immutable: each load
// or drop makes another, for the engine. Thread: owner (the reader of adapters); set(): any.

#include <cstddef>
#include <memory>
#include <mutex>

#include "schemas/base/error.hpp"
#include "schemas/control/messages.hpp"
#include "workers/store/adapter_set.hpp"
#include "workers/weights/checkpoint.hpp"

namespace moetier::roles {

class adapter_shelf final {
 public:
  // `memory_max_bytes`: of all adapters' values. Requires: `files` outlives the shelf.
  adapter_shelf(const workers::checkpoint& files, std::size_t memory_max_bytes);

  // What read_adapter() says.
  expected<void> load(const control::held_adapter& wanted);
  void drop(std::uint32_t adapter);

  // Never null.
  std::shared_ptr<const workers::adapter_set> set() const;

 private:
  void replace(workers::adapter_set next);

  const workers::checkpoint& files_;
  const std::size_t memory_max_bytes_;
  mutable std::mutex mutex_;
  std::shared_ptr<const workers::adapter_set> set_;
};

}  // namespace moetier::roles
