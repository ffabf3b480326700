#include "transport/in_process/carrier.hpp"

#include "transport/exchange/two_sided_capabilities.hpp"
#include "transport/exchange/two_sided_source.hpp"
#include "transport/exchange/two_sided_worker.hpp"
#include "transport/in_process/in_process_link.hpp"

namespace moetier::transport {
namespace {

class in_process_carrier final : public Communication {
 public:
  in_process_carrier(const carrier_options& options, fault_hooks* hooks)
      : checksum_(options.checksum_payload),
        hooks_(hooks),
        hub_(std::make_shared<in_process_hub>(hooks)) {
    if (hooks_ == nullptr) return;
    hooks_->set_on_change([hub = std::weak_ptr(hub_)] {
      if (const auto alive = hub.lock()) alive->wake_all();
    });
  }

  std::string_view name() const noexcept override { return "in_process"; }

  comm_capabilities capabilities() const noexcept override { return k_two_sided_capabilities; }

  expected<std::unique_ptr<SourceHalf>> make_source(const source_options& options) override {
    return two_sided_source::make(
        options, checksum_,
        std::make_unique<in_process_link>(
            hub_, fault_hooks::member{member_role::source, options.identity.source.value},
            options.workers_max));
  }

  expected<std::unique_ptr<WorkerHalf>> make_worker(const worker_options& options) override {
    return two_sided_worker::make(
        options, checksum_,
        std::make_unique<in_process_link>(
            hub_, fault_hooks::member{member_role::worker, options.identity.worker.value},
            options.sources_max));
  }

  std::string describe() const override {
    return checksum_ ? "copies inside this process, checked by CRC32C"
                     : "copies inside this process";
  }

 private:
  bool checksum_;
  fault_hooks* hooks_;
  std::shared_ptr<in_process_hub> hub_;
};

}  // namespace

std::unique_ptr<Communication> make_in_process(const carrier_options& options, fault_hooks* hooks) {
  return std::make_unique<in_process_carrier>(options, hooks);
}

}  // namespace moetier::transport
