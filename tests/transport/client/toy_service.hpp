#pragma once
// A tier inside the test: a link that grants sessions and shows the test's snapshots, a scripted
// carrier, and the C interface over both.

#include <optional>
#include <set>
#include <vector>

#include "tests/transport/client/scripted_carrier.hpp"
#include "transport/client/abi/handles.hpp"
#include "transport/client/abi/last_error.hpp"
#include "transport/client/abi/moetier.h"

namespace moetier::client::toy {

struct toy_tier {
  tier_shape shape;
  transport::snapshot_ptr newest;
  std::vector<transport::snapshot_ptr> history;
  scripted_carrier* carrier = nullptr;  // of the service, once it has one
  std::function<void(link_event, session_id)> sink;
  std::vector<session_wish> wishes;
  std::vector<std::uint32_t> attached;
  std::vector<std::uint32_t> closed;
  std::set<std::uint32_t> lost;
  std::optional<error> refuse_open;
  std::optional<error> refuse_attach;
  std::optional<error> refuse_close;
  std::uint32_t next_session = 1;
  duration_ns waited = 0;  // for a newer snapshot, at most
  std::string driver_library = "no-driver-in-tests.so";

  toy_tier() { publish(make_snapshot(shape)); }
  void publish(transport::routing_snapshot snapshot) {
    newest = std::make_shared<const transport::routing_snapshot>(std::move(snapshot));
    history.push_back(newest);
  }
};

class toy_link final : public tier_link {
 public:
  explicit toy_link(toy_tier& tier) : tier_(tier) {}

  expected<transport::snapshot_ptr> snapshot(duration_ns) override { return tier_.newest; }
  expected<session_granted> open_session(const session_wish& wish, duration_ns) override {
    if (tier_.refuse_open) return unexpected_error(*tier_.refuse_open);
    tier_.wishes.push_back(wish);
    return session_granted{.session = session_id(tier_.next_session++),
                           .source = source_id(3),
                           .tokens_max = wish.tokens_max == 0 ? 16 : wish.tokens_max,
                           .micro_batches = wish.micro_batches,
                           .top_k = wish.top_k == 0 ? tier_.shape.top_k : wish.top_k,
                           .call_deadline = 60 * k_second,
                           .tokens_per_second = nullptr,
                           .snapshot = tier_.newest,
                           .use = std::make_shared<session_use>()};
  }
  expected<void> attach(session_id session, const transport::source_shape&,
                        const transport::member_address&, duration_ns) override {
    if (tier_.refuse_attach) return unexpected_error(*tier_.refuse_attach);
    tier_.attached.push_back(session.value);
    return {};
  }
  expected<void> close_session(session_id session, duration_ns) override {
    tier_.closed.push_back(session.value);
    if (tier_.refuse_close) return unexpected_error(*tier_.refuse_close);
    return {};
  }
  expected<thin_result> forward(session_id, const thin_call&) override {
    return fail(reason::not_enabled, "forward");
  }
  transport::snapshot_ptr wait_newer(session_id, const transport::routing_snapshot& seen,
                                     duration_ns limit) override {
    tier_.waited = limit;
    return transport::is_newer(*tier_.newest, seen) ? tier_.newest : nullptr;
  }
  transport::snapshot_ptr newest() const override { return tier_.newest; }
  bool session_lost(session_id session) const override {
    return tier_.lost.contains(session.value);
  }
  expected<std::string> document(admin_document, duration_ns) override { return std::string("{}"); }
  expected<std::string> load_adapter(const std::string&, const std::string&, duration_ns) override {
    return fail(reason::not_enabled, "lora");
  }
  expected<void> set_log_level(const std::string&, duration_ns) override { return {}; }
  expected<std::string> drop_adapter(const std::string&, duration_ns) override {
    return fail(reason::not_enabled, "lora");
  }
  expected<layer_router_ptr> router(layer_id, duration_ns) override {
    return fail(reason::not_enabled, "gate tier");
  }
  void on_event(std::function<void(link_event, session_id)> sink) override {
    tier_.sink = std::move(sink);
  }

 private:
  toy_tier& tier_;
};

inline abi::service_world world_of(toy_tier& tier) {
  return {
      .connect = [&tier](std::string_view address, duration_ns,
                         const std::optional<tls_wish>&) -> expected<std::unique_ptr<tier_link>> {
        if (address != "tier:1") return fail(reason::coordinator_unreached, "nobody answers");
        return std::make_unique<toy_link>(tier);
      },
      .open_carrier =
          [&tier](std::string_view) -> expected<std::unique_ptr<transport::Communication>> {
        auto carrier = std::make_unique<scripted_carrier>();
        carrier->placed = tier.history.front().get();
        tier.carrier = carrier.get();
        return carrier;
      },
      .driver_library = tier.driver_library};
}

inline moetier_service_options at_tier() {
  return {.size = sizeof(moetier_service_options),
          .version = MOETIER_VERSION,
          .address = "tier:1",
          .tenant = nullptr,
          .tls = nullptr,
          .connect_timeout_ns = 0,
          .model_fingerprint = 0,
          .flight_file = nullptr};
}

template <class T>
T sized() {
  T value{};
  value.size = sizeof(T);
  value.version = MOETIER_VERSION;
  return value;
}

inline std::string last_text() {
  const moetier_error* e = moetier_last_error();
  return e == nullptr ? "" : e->text;
}

// A row-major tensor over a vector.
struct tensor {
  std::int64_t shape[2];
  std::int64_t strides[2];
  DLTensor dl{};

  template <class T>
  tensor(std::vector<T>& data, std::int64_t rows, std::int64_t width, DLDataType type)
      : shape{rows, width}, strides{width, 1} {
    dl.data = data.data();
    dl.device = {kDLCPU, 0};
    dl.ndim = 2;
    dl.dtype = type;
    dl.shape = shape;
    dl.strides = strides;
  }
  tensor(const tensor&) = delete;
};
inline constexpr DLDataType k_dl_f32{kDLFloat, 32, 1};
inline constexpr DLDataType k_dl_bf16{kDLBfloat, 16, 1};
inline constexpr DLDataType k_dl_i32{kDLInt, 32, 1};
inline constexpr DLDataType k_dl_i64{kDLInt, 64, 1};

}  // namespace moetier::client::toy
