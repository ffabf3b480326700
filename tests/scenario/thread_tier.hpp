#pragma once
// A whole data plane inside one test: workers as threads over the in-process carrier, loaded from a
// real checkpoint, and the source sessions that use them. No coordinator: the test makes the
// snapshots that a coordinator would publish.
// Thread: the test's.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/backend.hpp"
#include "transport/client/source/source_session.hpp"
#include "transport/in_process/carrier.hpp"
#include "transport/snapshot/routing_snapshot.hpp"
#include "workers/engine/engine.hpp"
#include "workers/store/expert_store.hpp"
#include "workers/weights/checkpoint.hpp"
#include "workers/weights/quantising_source.hpp"

namespace moetier::scenario {

class thread_tier final {
 public:
  struct parts {
    std::string_view backend{};               // a short name; "" = the best of this machine
    std::optional<quant_kind> quantise{};     // experts are held in this format
    std::string_view carrier = "in_process";  // as open_carrier() takes it
  };

  // `slots` per worker; the default placement, so that more slots than experts give replicas.
  // Throws std::runtime_error with the sentence of what cannot be had.
  thread_tier(const std::string& model_dir, std::vector<std::uint32_t> slots, parts with);
  thread_tier(const std::string& model_dir, std::vector<std::uint32_t> slots)
      : thread_tier(model_dir, std::move(slots), parts{}) {}
  ~thread_tier();

  const model_description& model() const { return checkpoint_->model(); }
  transport::snapshot_ptr snapshot() const { return snapshot_; }

  // A session attached to all workers.
  std::unique_ptr<client::source_session> session(client::source_session_options options);

  // Selections that the workers' engines counted, of all layers together.
  std::uint64_t counted();

  // The worker is gone: its member is killed, the next snapshot masks it.
  void kill(std::size_t index);
  // The worker is suspected, or the suspicion is taken back: only the next snapshot differs.
  void mask(std::size_t index, bool masked);

 private:
  struct worker;

  void publish(std::uint32_t counter);

  std::unique_ptr<workers::checkpoint> checkpoint_;
  transport::fault_hooks hooks_;
  std::unique_ptr<transport::Communication> carrier_;
  std::vector<std::unique_ptr<worker>> workers_;
  std::vector<bool> live_;
  transport::snapshot_ptr snapshot_;
  std::uint16_t next_source_ = 0;
  std::uint32_t revisions_ = 0;
};

}  // namespace moetier::scenario
