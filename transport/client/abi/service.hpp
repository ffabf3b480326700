#pragma once
// A service: the connection to one coordinator, the carrier that its sessions share, and who of
// them is to hear of what. Owned by the caller of moetier.h through its handle. What it reaches of
// the world outside comes in as two functions, so that tests open one on a tier inside the process.
// Thread: any.

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "transport/client/abi/device_driver.hpp"
#include "transport/client/abi/fork_mark.hpp"
#include "transport/client/abi/moetier.h"
#include "transport/client/link/router_cache.hpp"
#include "transport/client/link/tier_link.hpp"
#include "transport/communication.hpp"
#include "transport/waits/flight_file.hpp"

namespace moetier::abi {

struct service_world {
  std::function<expected<std::unique_ptr<client::tier_link>>(
      std::string_view, duration_ns, const std::optional<client::tls_wish>&)>
      connect;
  std::function<expected<std::unique_ptr<transport::Communication>>(std::string_view)> open_carrier;
  std::string driver_library = k_driver_library;  // loaded when the first device tensor comes
};

class session;

class service final {
 public:
  static expected<std::unique_ptr<service>> open(const moetier_service_options& options,
                                                 service_world world);
  ~service();

  expected<void> check() const { return mark_.check(); }
  expected<moetier_model_info> info();
  expected<void> may_close() const;

  client::tier_link& link() noexcept { return *link_; }
  const std::string& tenant() const noexcept { return tenant_; }
  const std::string& driver_library() const noexcept { return world_.driver_library; }
  // The carrier of that name, opened at its first use; a tier has one.
  expected<transport::Communication*> carrier(const std::string& name);
  // For sessions whose gate is on the tier; fetched at a layer's first use.
  expected<client::layer_router_ptr> router(layer_id layer) { return routers_->get(layer); }
  // The flight recorder of all of its sessions, and what is done with it at a TIMEOUT.
  transport::wait_ring& waits() noexcept { return waits_; }
  void on_timeout() noexcept;
  void enter(session& s);
  void leave(session& s) noexcept;

 private:
  service(service_world world, std::unique_ptr<client::tier_link> link,
          const moetier_service_options& options, transport::snapshot_ptr first);
  void hear(client::link_event event, session_id which) noexcept;

  fork_mark mark_;
  service_world world_;
  std::string tenant_;
  std::vector<std::uint16_t> layers_;  // what info() shows; never changes
  transport::snapshot_ptr first_;
  transport::wait_ring waits_;
  std::unique_ptr<transport::flight_file> flight_file_;  // null = none is wanted

  std::mutex carrier_mutex_;  // held for as long as an opening takes: never by the link's thread
  std::unique_ptr<transport::Communication> carrier_;
  std::string carrier_name_;

  mutable std::mutex sessions_mutex_;
  std::vector<session*> sessions_;

  std::unique_ptr<client::router_cache> routers_;
  std::unique_ptr<client::tier_link> link_;  // last: its thread is gone before the rest is
};

std::uint32_t live_workers(const transport::routing_snapshot& snapshot) noexcept;

}  // namespace moetier::abi
