#pragma once
// One context, worker and address of the UCX library: everything that one half owns of it. Settings
// are made here and nowhere else; a UCX_ variable of the user wins over each of them. Owned by a
// link; destroying it never waits for a peer. Thread: owner.

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ucp/api/ucp.h>

#include "transport/communication.hpp"

namespace moetier::transport {

class ucx_context final {
 public:
  // `transports`: these and no others, whatever options and environment say; empty = as those say.
  static expected<std::unique_ptr<ucx_context>> make(const carrier_options& options,
                                                     ucs_thread_mode_t thread_mode,
                                                     const std::string& transports = {});
  ~ucx_context();
  ucx_context(const ucx_context&) = delete;
  ucx_context& operator=(const ucx_context&) = delete;

  ucp_worker_h worker() const noexcept { return worker_; }
  int event_fd() const noexcept { return event_fd_; }
  std::span<const std::byte> address() const noexcept { return address_; }

 private:
  ucx_context() = default;

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int event_fd_ = -1;  // the library's
  std::vector<std::byte> address_;
};

// Our settings, without the prefix UCX_.
std::vector<std::pair<std::string, std::string>> ucx_settings(const carrier_options& options);

unexpected_error ucx_failure(const char* call, ucs_status_t status);

}  // namespace moetier::transport
