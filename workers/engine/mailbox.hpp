#pragma once
// Commands to the engine, in order. Posting takes a lock and may allocate; looking for news is one
// relaxed load, so the layer's path never waits for a poster.
// Thread: post: any; pending, take: engine.

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <variant>
#include <vector>

#include "schemas/control/messages.hpp"
#include "workers/store/adapter_set.hpp"
#include "workers/store/generation_table.hpp"

namespace moetier::workers {

struct serve_command {
  std::shared_ptr<const generation_table> table;
  std::uint32_t first_slot = 0;
  std::uint64_t resolution = 0;
};
struct release_command {
  generation_number older_than;
};
struct attach_command {
  control::source_attachment source;
};
struct detach_command {
  source_id source;
  incarnation_id incarnation;
};
struct adapters_command {
  std::shared_ptr<const adapter_set> adapters;
};
struct drain_command {};

using engine_command = std::variant<serve_command, release_command, attach_command, detach_command,
                                    adapters_command, drain_command>;

class mailbox final {
 public:
  void post(engine_command command) {
    const std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
    pending_.store(true, std::memory_order_release);
  }
  bool pending() const noexcept { return pending_.load(std::memory_order_acquire); }
  std::vector<engine_command> take() {
    const std::lock_guard lock(mutex_);
    pending_.store(false, std::memory_order_relaxed);
    return std::exchange(commands_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<engine_command> commands_;
  std::atomic<bool> pending_{false};
};

}  // namespace moetier::workers
