#include "transport/ucx/echo.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>

#include <sched.h>
#include <ucp/api/ucp.h>

#include "schemas/base/time.hpp"
#include "transport/ucx/ucx_context.hpp"

namespace moetier::transport {
namespace {

constexpr unsigned k_echo_id = 9;
constexpr duration_ns k_call_limit = 2 * k_second;
// So often an end looks in vain before it lets others run: longer than a small round trip takes
// while both ends have a core. Where they share one, they would spend their slices on waiting for
// each other: 35 ms a round trip on a busy machine.
constexpr std::uint32_t k_polls_until_yield = 32;

// One of the two ends: a worker, an endpoint to the other, a count of what has arrived.
class echo_end final {
 public:
  static expected<std::unique_ptr<echo_end>> make(const echo_wish& wish) {
    auto context = ucx_context::make(wish.options, UCS_THREAD_MODE_SINGLE, wish.transports);
    if (!context) return unexpected_error(context.error());
    std::unique_ptr<echo_end> e(new echo_end(std::move(*context)));
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                         UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = k_echo_id;
    handler.cb = &on_message;
    handler.arg = e.get();
    const auto s = ucp_worker_set_am_recv_handler(e->worker(), &handler);
    if (s != UCS_OK) return ucx_failure("ucp_worker_set_am_recv_handler", s);
    return e;
  }

  ~echo_end() {
    if (endpoint_ == nullptr) return;
    ucp_request_param_t force{};
    force.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    force.flags = UCP_EP_CLOSE_FLAG_FORCE;
    const ucs_status_ptr_t closing = ucp_ep_close_nbx(endpoint_, &force);
    if (UCS_PTR_IS_PTR(closing)) ucp_request_free(closing);
  }
  echo_end(const echo_end&) = delete;
  echo_end& operator=(const echo_end&) = delete;

  expected<void> connect(const echo_end& other) {
    ucp_ep_params_t param{};
    param.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                       UCP_EP_PARAM_FIELD_ERR_HANDLER;
    param.address = reinterpret_cast<const ucp_address_t*>(other.context_->address().data());
    param.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    param.err_handler.cb = [](void*, ucp_ep_h, ucs_status_t) {};
    const auto s = ucp_ep_create(worker(), &param, &endpoint_);
    if (s != UCS_OK) return ucx_failure("ucp_ep_create", s);
    return {};
  }

  void reserve(std::size_t header_bytes, std::size_t payload_bytes, std::size_t receive_bytes) {
    header_.assign(header_bytes, std::byte{0});
    payload_.assign(payload_bytes, std::byte{0});
    landing_.assign(receive_bytes, std::byte{0});
  }

  bool send() {
    const ucp_request_param_t plain{};
    const ucs_status_ptr_t sending =
        ucp_am_send_nbx(endpoint_, k_echo_id, header_.data(), header_.size(), payload_.data(),
                        payload_.size(), &plain);
    if (UCS_PTR_IS_ERR(sending)) return false;
    if (UCS_PTR_IS_PTR(sending)) ucp_request_free(sending);
    return true;
  }

  // Whether message number `n` is here.
  bool progress_until(std::uint64_t n) {
    ucp_worker_progress(worker());
    if (arrived_ >= n) return true;
    if (++vain_ % k_polls_until_yield == 0) ::sched_yield();
    return false;
  }

 private:
  explicit echo_end(std::unique_ptr<ucx_context> context) : context_(std::move(context)) {}
  ucp_worker_h worker() const noexcept { return context_->worker(); }

  static ucs_status_t on_message(void* self, const void*, std::size_t, void* data,
                                 std::size_t bytes, const ucp_am_recv_param_t* param) {
    auto& e = *static_cast<echo_end*>(self);
    if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
      ++e.arrived_;
      return UCS_OK;
    }
    ucp_request_param_t receive{};
    receive.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    receive.user_data = self;
    receive.cb.recv_am = [](void* request, ucs_status_t, std::size_t, void* user) {
      ++static_cast<echo_end*>(user)->arrived_;
      ucp_request_free(request);
    };
    const ucs_status_ptr_t receiving = ucp_am_recv_data_nbx(
        e.worker(), data, e.landing_.data(), std::min(bytes, e.landing_.size()), &receive);
    if (receiving == nullptr) ++e.arrived_;
    return UCS_INPROGRESS;
  }

  std::unique_ptr<ucx_context> context_;
  ucp_ep_h endpoint_ = nullptr;
  std::vector<std::byte> header_;
  std::vector<std::byte> payload_;
  std::vector<std::byte> landing_;
  std::uint64_t arrived_ = 0;
  std::uint32_t vain_ = 0;  // looks
};

expected<std::vector<std::uint64_t>> measure(const echo_wish& wish) {
  auto near = echo_end::make(wish);
  if (!near) return unexpected_error(near.error());
  auto far = echo_end::make(wish);
  if (!far) return unexpected_error(far.error());
  if (auto done = (*near)->connect(**far); !done) return unexpected_error(done.error());
  if (auto done = (*far)->connect(**near); !done) return unexpected_error(done.error());
  (*near)->reserve(wish.header_bytes, wish.out_bytes, wish.back_bytes);
  (*far)->reserve(wish.header_bytes, wish.back_bytes, wish.out_bytes);

  std::atomic<bool> over{false};
  std::thread echo([&] {
    for (std::uint64_t n = 1; !over.load(std::memory_order_relaxed);) {
      if ((*far)->progress_until(n) && (*far)->send()) ++n;
    }
  });
  std::vector<std::uint64_t> round_trips;
  round_trips.reserve(wish.calls);
  bool lost = false;
  const std::uint64_t all = std::uint64_t{wish.warmup} + wish.calls;
  for (std::uint64_t n = 1; n <= all && !lost; ++n) {
    const time_ns began = monotonic_now();
    lost = !(*near)->send();
    while (!lost && !(*near)->progress_until(n)) {
      lost = monotonic_now() - began > k_call_limit;
    }
    if (n > wish.warmup) round_trips.push_back(monotonic_now() - began);
  }
  over.store(true);
  echo.join();
  if (lost) return fail(reason::carrier_unavailable, "ucx", "an echo did not come back");
  return round_trips;
}

}  // namespace
}  // namespace moetier::transport

extern "C" __attribute__((visibility("default"))) bool moetier_ucx_echo(
    const moetier::transport::echo_wish& wish, std::vector<std::uint64_t>& round_trips_ns,
    std::string& why) {
  auto times = moetier::transport::measure(wish);
  if (!times) {
    why = times.error().text;
    return false;
  }
  round_trips_ns = std::move(*times);
  return true;
}
