#include "transport/ucx/ucx_link.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <sched.h>

#include "schemas/base/assert.hpp"
#include "transport/exchange/limits.hpp"
#include "transport/exchange/sealed_address.hpp"

namespace moetier::transport {
namespace {

using clock = std::chrono::steady_clock;

// How many bursts of the library's progress one progress() takes before it hands over what came.
constexpr int k_bursts_max = 64;
// The library looks for dead peers in its progress alone, and only in one of 32 calls: a sleeper
// gets up for that at its keepalive interval.
constexpr auto k_keepalive_interval = std::chrono::milliseconds(100);
constexpr int k_keepalive_calls = 64;
// The first sleep while a request of ours is pending; each fruitless one doubles it.
constexpr auto k_nap_min = std::chrono::microseconds(20);
// So often in a row the library may say that something came and then move nothing, before the wait
// naps by the clock: a transport that cannot be armed now would keep a whole core busy. What comes
// during such a nap wakes nobody, so it is short at most.
constexpr int k_busy_max = 64;
constexpr auto k_busy_nap_max = std::chrono::milliseconds(1);
// When a half ends: what last sends may take, then what closing all endpoints by force may take.
constexpr auto k_flush_limit = std::chrono::milliseconds(10);
constexpr auto k_close_limit = std::chrono::milliseconds(100);

constexpr std::uint32_t k_request_fields =
    UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_DATATYPE |
    UCP_OP_ATTR_FIELD_MEMORY_TYPE;

ucp_request_param_t host_bytes(void* user_data) {
  ucp_request_param_t param{};
  param.op_attr_mask = k_request_fields;
  param.datatype = ucp_dt_make_contig(1);
  param.memory_type = UCS_MEMORY_TYPE_HOST;
  param.user_data = user_data;
  return param;
}

}  // namespace

expected<std::unique_ptr<Link>> ucx_link::make(const carrier_options& options, member_role role) {
  // A source's calls may move between threads that the caller serialises; a worker's stay.
  auto context = ucx_context::make(
      options, role == member_role::source ? UCS_THREAD_MODE_SERIALIZED : UCS_THREAD_MODE_SINGLE);
  if (!context) return unexpected_error(context.error());
  if ((*context)->address().size() + 8 > k_address_bytes_max)
    return fail(reason::carrier_unavailable, "ucx",
                fmt::format("its address takes {} bytes; narrow UCX_NET_DEVICES or UCX_TLS",
                            (*context)->address().size()));
  std::unique_ptr<ucx_link> link(new ucx_link(std::move(*context), role));
  if (const auto status = link->set_handler(); status != UCS_OK)
    return ucx_failure("ucp_worker_set_am_recv_handler", status);
  return link;
}

ucx_link::ucx_link(std::unique_ptr<ucx_context> context, member_role role)
    : context_(std::move(context)),
      address_(seal_address(address_tag::ucx, context_->address())),
      send_id_(role == member_role::source ? k_ucx_dispatch_id : k_ucx_give_back_id),
      receive_id_(role == member_role::source ? k_ucx_give_back_id : k_ucx_dispatch_id) {}

ucs_status_t ucx_link::set_handler() {
  ucp_am_handler_param_t param{};
  param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                     UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  param.id = receive_id_;
  param.flags = UCP_AM_FLAG_WHOLE_MSG;
  param.cb = on_frame;
  param.arg = this;
  return ucp_worker_set_am_recv_handler(context_->worker(), &param);
}

ucx_link::~ucx_link() {
  const auto flushed_by = clock::now() + k_flush_limit;
  while (idle_requests_.size() < requests_.size() && clock::now() < flushed_by)
    ucp_worker_progress(context_->worker());
  for (auto& [id, p] : peers_) {
    close(*p);
    closing_.push_back(std::move(p));
  }
  const auto deadline = clock::now() + k_close_limit;
  for (sweep(); !closing_.empty() && clock::now() < deadline; sweep())
    ucp_worker_progress(context_->worker());
  // A receive that never ended may be one that its sender still writes: that memory stays mapped.
  for (const auto& r : requests_)
    if (r->memory) r->memory->leak();
  context_.reset();
}

expected<link_peer> ucx_link::connect(const member_address& address,
                                      std::shared_ptr<bank_memory> memory) {
  const auto body = open_address(address_tag::ucx, address);
  if (!body) return unexpected_error(body.error());
  auto p = std::make_unique<peer>();
  p->link = this;
  p->id = ++last_peer_;
  p->memory = std::move(memory);
  ucp_ep_params_t param{};
  param.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                     UCP_EP_PARAM_FIELD_ERR_HANDLER;
  param.address = reinterpret_cast<const ucp_address_t*>(body->data());
  param.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  param.err_handler.cb = on_peer_error;
  param.err_handler.arg = p.get();
  if (const auto s = ucp_ep_create(context_->worker(), &param, &p->endpoint); s != UCS_OK)
    return ucx_failure("ucp_ep_create", s);
  // Per peer and bank one send, one receive, and one event of each: the layer's path finds them
  // here.
  while (requests_.size() < (peers_.size() + 1) * 2 * k_banks_max) {
    requests_.push_back(std::make_unique<request>(request{.link = this, .memory = {}}));
    idle_requests_.push_back(requests_.back().get());
  }
  idle_requests_.reserve(requests_.size());
  events_.reserve(2 * requests_.size());
  const link_peer id = p->id;
  peers_.emplace(id, std::move(p));
  return id;
}

void ucx_link::disconnect(link_peer id) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  close(*found->second);
  closing_.push_back(std::move(found->second));
  peers_.erase(found);
}

link_send ucx_link::send(link_peer id, std::uint32_t bank, std::size_t payload_bytes,
                         link_place place) {
  const auto found = peers_.find(id);
  MOETIER_ASSERT(found != peers_.end());
  peer& p = *found->second;
  if (p.endpoint == nullptr) return link_send::failed;
  last_useful_ = clock::now();

  request& r = take_request();
  r.peer = id;
  r.place = place;
  r.memory = p.memory;
  ucp_request_param_t param = host_bytes(&r);
  param.cb.send = on_sent;
  // Header and payload lie in the bank, which `r` keeps until the library has let go of both.
  const ucs_status_ptr_t sending =
      ucp_am_send_nbx(p.endpoint, send_id_, p.memory->head(bank).data(), k_wire_header_bytes,
                      p.memory->out(bank).data(), payload_bytes, &param);
  if (UCS_PTR_IS_PTR(sending)) return link_send::pending;
  put_request(r);
  if (sending == nullptr) return link_send::done;
  close(p);
  return link_send::failed;
}

void ucx_link::progress(FrameSink& sink) {
  sink_ = &sink;
  advance(sink);
  sink_ = nullptr;
}

void ucx_link::wait(FrameSink& sink, std::chrono::nanoseconds spin,
                    std::chrono::nanoseconds limit) {
  sink_ = &sink;
  const auto deadline = clock::now() + limit;
  std::chrono::nanoseconds nap = k_nap_min;
  int busy = 0;  // times in a row
  for (;;) {
    const auto useful_before = last_useful_;
    if (advance(sink)) {
      nap = k_nap_min;
      busy = 0;
    }
    // What moved has looked at the clock already: a call's answer waits for no second look.
    const auto now = last_useful_ != useful_before ? last_useful_ : clock::now();
    if (sink.has_work() || wake_.is_set() || now >= deadline) break;
    if (now < last_useful_ + spin) {
      // The peer may wait for this very core: the scheduler likes to put a woken thread beside its
      // waker. Without yielding, two processes on busy cores each spin their time out: 63 us a
      // round trip instead of 18.
      ::sched_yield();
      continue;
    }
    const ucs_status_t armed = ucp_worker_arm(context_->worker());
    if (armed == UCS_ERR_BUSY) {  // something came: move it first
      if (++busy < k_busy_max) continue;
      // Not on the library's descriptor: it is not armed, or shows what moves nothing.
      nap = std::min<std::chrono::nanoseconds>(nap, k_busy_nap_max);
      wake_.sleep(-1, std::min<std::chrono::nanoseconds>(deadline - now, nap));
      nap *= 2;
      look_after_peers();
      continue;
    }
    MOETIER_ASSERT(armed == UCS_OK);
    busy = 0;
    // Nothing signals that a peer has made room again: what is pending is looked after by naps.
    const bool is_pending = idle_requests_.size() < requests_.size();
    const auto longest = is_pending ? nap : std::chrono::nanoseconds(k_keepalive_interval);
    wake_.sleep(context_->event_fd(), std::min<std::chrono::nanoseconds>(deadline - now, longest));
    nap = std::min<std::chrono::nanoseconds>(2 * nap, k_keepalive_interval);
    look_after_peers();
  }
  wake_.clear();
  sink_ = nullptr;
}

std::uint64_t ucx_link::requests_left() const noexcept {
  return static_cast<std::uint64_t>(
      std::count_if(requests_.begin(), requests_.end(), [&](const auto& r) {
        return r->memory && std::none_of(peers_.begin(), peers_.end(), [&](const auto& entry) {
                 return entry.second->memory == r->memory;
               });
      }));
}

bool ucx_link::advance(FrameSink& sink) {
  bool moved = false;
  for (int burst = 0; burst < k_bursts_max; ++burst) {
    if (ucp_worker_progress(context_->worker()) == 0) break;
    moved = true;
  }
  handle(sink);
  if (!closing_.empty()) sweep();
  if (std::exchange(useful_, false)) last_useful_ = clock::now();
  return moved;
}

void ucx_link::look_after_peers() {
  const auto now = clock::now();
  if (now < last_keepalive_ + k_keepalive_interval) return;
  last_keepalive_ = now;
  for (int call = 0; call < k_keepalive_calls; ++call) ucp_worker_progress(context_->worker());
}

void ucx_link::handle(FrameSink& sink) {
  for (const event& e : events_) {
    switch (e.what) {
      case event::kind::landed: sink.landed(e.subject, true); break;
      case event::kind::spoiled: sink.landed(e.subject, false); break;
      case event::kind::sent: sink.sent(e.subject, 0); break;
      case event::kind::lost: {
        const auto id = static_cast<link_peer>(e.subject);
        const auto found = peers_.find(id);
        if (found == peers_.end()) break;
        close(*found->second);
        sink.lost(id);
        break;
      }
    }
  }
  events_.clear();
}

ucs_status_t ucx_link::on_frame(void* arg, const void* head, std::size_t head_bytes, void* data,
                                std::size_t bytes, const ucp_am_recv_param_t* param) {
  auto& self = *static_cast<ucx_link*>(arg);
  self.useful_ = true;
  // A half that is being taken down admits nothing. OK without a receive drops the data.
  if (self.sink_ == nullptr) return UCS_OK;
  const landing to = self.sink_->admit({static_cast<const std::byte*>(head), head_bytes}, bytes);
  if (!to.admitted) return UCS_OK;
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return self.receive(data, to);
  if (bytes > 0) std::memcpy(to.region.data(), data, bytes);
  self.push(event::kind::landed, to.place);
  return UCS_OK;
}

ucs_status_t ucx_link::receive(void* descriptor, const landing& to) {
  request& r = take_request();
  r.peer = 0;
  r.place = to.place;
  r.memory = *to.memory;
  ucp_request_param_t param = host_bytes(&r);
  param.cb.recv_am = on_received;
  const ucs_status_ptr_t receiving = ucp_am_recv_data_nbx(
      context_->worker(), descriptor, to.region.data(), to.region.size(), &param);
  if (!UCS_PTR_IS_PTR(receiving)) {
    put_request(r);
    push(receiving == nullptr ? event::kind::landed : event::kind::spoiled, to.place);
  }
  return UCS_INPROGRESS;
}

void ucx_link::on_received(void* request_of_ucx, ucs_status_t status, std::size_t bytes,
                           void* user_data) {
  (void)bytes;
  auto& r = *static_cast<request*>(user_data);
  ucx_link& self = *r.link;
  self.push(status == UCS_OK ? event::kind::landed : event::kind::spoiled, r.place);
  self.put_request(r);
  ucp_request_free(request_of_ucx);
}

void ucx_link::on_sent(void* request_of_ucx, ucs_status_t status, void* user_data) {
  auto& r = *static_cast<request*>(user_data);
  ucx_link& self = *r.link;
  if (status != UCS_OK) self.push(event::kind::lost, r.peer);
  self.push(event::kind::sent, r.place);
  self.put_request(r);
  ucp_request_free(request_of_ucx);
}

void ucx_link::on_peer_error(void* arg, ucp_ep_h, ucs_status_t) {
  const auto& p = *static_cast<const peer*>(arg);
  p.link->push(event::kind::lost, p.id);
}

void ucx_link::close(peer& p) {
  if (p.endpoint == nullptr) return;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const ucs_status_ptr_t closing = ucp_ep_close_nbx(std::exchange(p.endpoint, nullptr), &param);
  if (UCS_PTR_IS_PTR(closing)) p.closing = closing;
}

bool ucx_link::is_closed(peer& p) {
  if (p.closing == nullptr) return true;
  if (ucp_request_check_status(p.closing) == UCS_INPROGRESS) return false;
  ucp_request_free(std::exchange(p.closing, nullptr));
  return true;
}

void ucx_link::sweep() {
  std::erase_if(closing_, [&](const auto& p) { return is_closed(*p); });
}

ucx_link::request& ucx_link::take_request() {
  if (idle_requests_.empty()) {
    // Only when the library holds on to requests of peers that are gone.
    requests_.push_back(std::make_unique<request>(request{.link = this, .memory = {}}));
    return *requests_.back();
  }
  request& r = *idle_requests_.back();
  idle_requests_.pop_back();
  return r;
}

void ucx_link::put_request(request& r) {
  r.memory.reset();
  idle_requests_.push_back(&r);
}

void ucx_link::push(event::kind what, std::uint64_t subject) {
  useful_ = true;
  events_.push_back({.what = what, .subject = subject});
}

}  // namespace moetier::transport
