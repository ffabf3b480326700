#include "transport/shared_memory/carrier.hpp"

#include <sys/prctl.h>

#include "transport/exchange/two_sided_capabilities.hpp"
#include "transport/exchange/two_sided_source.hpp"
#include "transport/exchange/two_sided_worker.hpp"
#include "transport/shared_memory/peer_process.hpp"
#include "transport/shared_memory/shared_memory_link.hpp"

namespace moetier::transport {
namespace {

class shared_memory_carrier final : public Communication {
 public:
  explicit shared_memory_carrier(const carrier_options& options)
      : checksum_(options.checksum_payload) {}

  std::string_view name() const noexcept override { return "shared_memory"; }

  comm_capabilities capabilities() const noexcept override { return k_two_sided_capabilities; }

  expected<std::unique_ptr<SourceHalf>> make_source(const source_options& options) override {
    auto link = shared_memory_link::make();
    if (!link) return unexpected_error(link.error());
    return two_sided_source::make(options, checksum_, std::move(*link));
  }

  expected<std::unique_ptr<WorkerHalf>> make_worker(const worker_options& options) override {
    auto link = shared_memory_link::make();
    if (!link) return unexpected_error(link.error());
    return two_sided_worker::make(options, checksum_, std::move(*link));
  }

  std::string describe() const override {
    return checksum_ ? "memory shared by processes of this host, checked by CRC32C"
                     : "memory shared by processes of this host";
  }

 private:
  bool checksum_;
};

// Some sandboxes forbid to open what a process of one's own has opened, or know no process
// descriptors; and nobody may open what one holds that has changed its user.
expected<void> try_block() {
  if (!peer_process::kernel_can_watch())
    return fail(reason::carrier_unavailable, "shared_memory",
                "this kernel or sandbox has no process descriptors; set transport.carrier: ucx");
  if (prctl(PR_GET_DUMPABLE) != 1)
    return fail(reason::carrier_unavailable, "shared_memory",
                "this process has changed its user or gained capabilities, so peers may not open "
                "its memory; start it anew as that user, or set transport.carrier: ucx");
  auto made = shared_block::make(2 * shared_block::k_token_bytes);
  if (!made) return unexpected_error(made.error());
  auto opened = shared_block::open((*made)->name());
  if (opened) (*made)->bytes().back() = std::byte{42};
  if (opened && (*opened)->bytes().back() == std::byte{42}) return {};
  return fail(reason::carrier_unavailable, "shared_memory",
              "this process cannot open its own anonymous files in /proc; set transport.carrier: "
              "ucx");
}

}  // namespace

expected<std::unique_ptr<Communication>> make_shared_memory(const carrier_options& options) {
  if (auto ok = try_block(); !ok) return unexpected_error(ok.error());
  return std::make_unique<shared_memory_carrier>(options);
}

}  // namespace moetier::transport
