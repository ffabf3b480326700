#include "coordinator/rpc/tier_service.hpp"

#include <string>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "coordinator/rpc/answering.hpp"
#include "coordinator/rpc/session_service.hpp"
#include "coordinator/rpc/tier_document.hpp"
#include "transport/client/source/call_check.hpp"

namespace moetier::coordinator {
namespace {

expected<control::log_threshold> threshold_of(std::string_view name) {
  using control::log_threshold;
  constexpr std::pair<std::string_view, log_threshold> k_names[] = {
      {"configured", log_threshold::as_configured},
      {"debug", log_threshold::debug},
      {"info", log_threshold::info},
      {"warn", log_threshold::warn},
      {"error", log_threshold::error},
      {"off", log_threshold::off}};
  for (const auto& [known, level] : k_names) {
    if (known == name) return level;
  }
  return fail(reason::invalid_argument, "level", "another word",
              "configured, debug, info, warn, error or off");
}

class admin_service final : public rpc::Admin::Server {
 public:
  explicit admin_service(const service_place& place) : desk_(place.the_desk), place_(place) {
    place_.administration = true;
  }

 protected:
  kj::Promise<void> status(StatusContext context) override {
    return answering(place_, context, "status",
                     [this, context](duration_ns) mutable -> kj::Promise<expected<void>> {
                       // Only who shares the machine can use the socket.
                       const bool shares = place_.who.by != link_kind::tls;
                       return write(context, status_document(*desk_.port().view(),
                                                             shares ? desk_.admin_socket() : ""));
                     });
  }
  kj::Promise<void> resolution(ResolutionContext context) override {
    return answering(place_, context, "resolution",
                     [this, context](duration_ns) mutable -> kj::Promise<expected<void>> {
                       const auto resolved = desk_.port().view()->resolved;
                       if (resolved == nullptr)
                         return expected<void>(fail(reason::not_ready, "nothing is resolved yet"));
                       return write(context, resolution::canonical_json(*resolved));
                     });
  }
  kj::Promise<void> placement(PlacementContext context) override {
    return answering(place_, context, "placement",
                     [this, context](duration_ns) mutable -> kj::Promise<expected<void>> {
                       const auto document = placement_document(*desk_.port().view());
                       if (!document) return expected<void>(unexpected_error(document.error()));
                       return write(context, *document);
                     });
  }
  kj::Promise<void> adapters(AdaptersContext context) override {
    return answering(place_, context, "adapters",
                     [this, context](duration_ns) mutable -> kj::Promise<expected<void>> {
                       return write(context, adapters_document(*desk_.port().view()));
                     });
  }
  kj::Promise<void> experts(ExpertsContext context) override {
    return answering(place_, context, "experts",
                     [this, context](duration_ns) mutable -> kj::Promise<expected<void>> {
                       return write(context, experts_document(*desk_.port().view()));
                     });
  }
  kj::Promise<void> setLogLevel(SetLogLevelContext context) override {
    return answering(place_, context, "set_log_level",
                     [this, context](duration_ns) mutable -> kj::Promise<expected<void>> {
                       if (auto may = place_.who.may_change("set_log_level"); !may) {
                         return expected<void>(std::move(may));
                       }
                       const auto told = context.getParams().getLevel();
                       const auto level = threshold_of({told.cStr(), told.size()});
                       if (!level) return expected<void>(unexpected_error(level.error()));
                       desk_.port().post(set_log_level{*level});
                       return expected<void>();
                     });
  }
  kj::Promise<void> loadAdapter(LoadAdapterContext context) override {
    return answering(place_, context, "load_adapter",
                     [this, context](duration_ns) mutable -> kj::Promise<expected<void>> {
                       if (auto may = place_.who.may_change("load_adapter"); !may) return may;
                       const auto params = context.getParams();
                       return desk_.load_adapter(params.getName(), params.getPath())
                           .then([this, context](expected<void> done) mutable {
                             return list_after(context, std::move(done));
                           });
                     });
  }
  kj::Promise<void> dropAdapter(DropAdapterContext context) override {
    return answering(place_, context, "drop_adapter",
                     [this, context](duration_ns) mutable -> kj::Promise<expected<void>> {
                       if (auto may = place_.who.may_change("drop_adapter"); !may) return may;
                       return desk_.drop_adapter(context.getParams().getName())
                           .then([this, context](expected<void> done) mutable {
                             return list_after(context, std::move(done));
                           });
                     });
  }

 private:
  template <class Context>
  expected<void> list_after(Context& context, expected<void> done) {
    if (!done) return done;
    return write(context, adapters_document(*desk_.port().view()));
  }
  template <class Context>
  static expected<void> write(Context& context, const std::string& document) {
    constexpr std::size_t k_max = k_rpc_message_bytes_max - client::k_message_overhead_bytes;
    if (document.size() > k_max) {
      return fail(reason::limit_exceeded, "document bytes", document.size(), k_max);
    }
    context.getResults().setDocument(kj::StringPtr(document.c_str(), document.size()));
    return {};
  }

  desk& desk_;
  service_place place_;
};

expected<session_request> read_wish(const caller& who, rpc::Call::Reader call,
                                    rpc::Tier::Wish::Reader wish) {
  session_request request;
  request.tenant = std::string(wish.getTenant().cStr(), wish.getTenant().size());
  constexpr std::size_t k_tenant_bytes_max = 64;
  if (request.tenant.empty() || request.tenant.size() > k_tenant_bytes_max) {
    return fail(reason::invalid_argument, "tenant", fmt::format("{} bytes", request.tenant.size()),
                "1 to 64 printable characters");
  }
  for (const char c : request.tenant) {
    if (c < 0x20 || c > 0x7e) {
      return fail(reason::invalid_argument, "tenant", "not printable",
                  "1 to 64 printable characters");
    }
  }
  auto tenant = who.tenant(request.tenant);
  if (!tenant) return unexpected_error(tenant.error());
  request.tenant = std::move(*tenant);
  if (wish.getReturnMode() > 1) {
    return fail(reason::invalid_argument, "return_mode", wish.getReturnMode(),
                "0 (partial) or 1 (exact)");
  }
  if (wish.getReturnDtype() > static_cast<std::uint8_t>(dtype::bf16)) {
    return fail(reason::invalid_dtype, "return", wish.getReturnDtype(),
                "0 (f32), 1 (f16) or 2 (bf16)");
  }
  for (const auto& [name, value, allowed] :
       {std::tuple("gate", wish.getGate(), "0 (client) or 1 (tier)"),
        std::tuple("shared_experts", wish.getSharedExperts(), "0 (client) or 1 (tier)"),
        std::tuple("bad_rows", wish.getBadRows(), "0 (reject) or 1 (flag)")}) {
    if (value > 1) return fail(reason::invalid_argument, name, value, allowed);
  }
  if (wish.getDeadlineClass() > k_deadline_classes) {
    return fail(reason::invalid_argument, "deadline_class", wish.getDeadlineClass(),
                "0 (the tenant's highest), 1 (decode), 2 (prefill) or 3 (batch)");
  }
  if (wish.getDeadlineClass() > 0)
    request.urgency = static_cast<deadline_class>(wish.getDeadlineClass() - 1);
  request.client = call.getClientId();
  request.incarnation = incarnation_id(wish.getThin() ? random_bits() : wish.getIncarnation());
  request.tokens_max = wish.getTokensMax();
  request.micro_batches = wish.getMicroBatches();
  request.top_k = wish.getTopK();
  request.return_mode = wish.getReturnMode();
  request.return_dtype = static_cast<dtype>(wish.getReturnDtype());
  request.thin = wish.getThin();
  request.gate_on_tier = wish.getGate() == 1;
  request.shared_experts = wish.getSharedExperts() == 1;
  request.flags_bad_rows = wish.getBadRows() == 1;
  request.model_fingerprint = wish.getModelFingerprint();
  return request;
}

}  // namespace

tier_service::tier_service(const service_place& place)
    : desk_(place.the_desk), place_(place), admin_(kj::heap<admin_service>(place)) {}

kj::Promise<void> tier_service::ping(PingContext context) {
  return answering(place_, context, "ping",
                   [](duration_ns) -> kj::Promise<expected<void>> { return expected<void>(); });
}

kj::Promise<void> tier_service::info(InfoContext context) {
  return answering(
      place_, context, "info", [this, context](duration_ns) mutable -> kj::Promise<expected<void>> {
        auto info = context.getResults().initInfo();
        info.setProtocolMin(client::k_rpc_protocol_min);
        info.setProtocolMax(client::k_rpc_protocol_max);
        const auto view = desk_.port().view();
        info.setEpoch(view->epoch.value);
        info.setReady(view->ready);
        const auto& snapshot = desk_.snapshot();
        if (snapshot == nullptr) return expected<void>();
        const model_description& model = snapshot->model;
        info.setModelType(kj::StringPtr(model.model_type.c_str(), model.model_type.size()));
        info.setFingerprint(model.fingerprint);
        info.setHiddenSize(model.hidden_size);
        info.setRouterColumns(model.columns());
        info.setExperts(model.experts);
        info.setTopK(model.top_k);
        auto layers = info.initMoeLayers(static_cast<capnp::uint>(model.moe_layers.size()));
        for (capnp::uint i = 0; i < layers.size(); ++i) layers.set(i, model.moe_layers[i].value);
        return expected<void>();
      });
}

kj::Promise<void> tier_service::snapshot(SnapshotContext context) {
  return answering(place_, context, "snapshot",
                   [this, context](duration_ns) mutable -> kj::Promise<expected<void>> {
                     const auto bytes = desk_.snapshot_bytes();
                     if (!bytes) return expected<void>(unexpected_error(bytes.error()));
                     context.getResults().setSnapshot(*bytes);
                     return expected<void>();
                   });
}

kj::Promise<void> tier_service::openSession(OpenSessionContext context) {
  return answering(place_, context, "open_session",
                   [this, context](duration_ns) mutable -> kj::Promise<expected<void>> {
                     if (auto open = desk_.admission(); !open) return open;
                     auto request = read_wish(place_.who, context.getParams().getCall(),
                                              context.getParams().getWish());
                     if (!request) return expected<void>(unexpected_error(request.error()));
                     if (auto room = desk_.room_to_open(*request); !room) return room;
                     if (!request->thin) return open_direct(context, std::move(*request));
                     if (!desk_.has_gateway()) {
                       return expected<void>(fail(reason::not_enabled, "the gateway"));
                     }
                     return open_thin(context, std::move(*request));
                   });
}

kj::Promise<expected<void>> tier_service::open_direct(OpenSessionContext context,
                                                      session_request request) {
  const incarnation_id incarnation = request.incarnation;
  return desk_.open(std::move(request))
      .then([this, context, incarnation](expected<session_grant> grant) mutable -> expected<void> {
        if (!grant) return unexpected_error(grant.error());
        context.getResults().setSession(
            kj::heap<session_service>(place_, *grant, incarnation, session_request{}));
        return write_grant(context.getResults().initGrant(), *grant);
      });
}

// Grant, then the gateway's source half, then its place at every worker; a failure gives all back.
kj::Promise<expected<void>> tier_service::open_thin(OpenSessionContext context,
                                                    session_request request) {
  using outcome = kj::Promise<expected<void>>;
  const incarnation_id incarnation = request.incarnation;
  const session_request asked = request;
  return desk_.open(std::move(request))
      .then([this, context, incarnation, asked](expected<session_grant> grant) mutable -> outcome {
        if (!grant) return expected<void>(unexpected_error(grant.error()));
        // From here on the service gives the session back when it is dropped.
        auto service = kj::heap<session_service>(place_, *grant, incarnation, asked);
        if (grant->snapshot == nullptr) {
          return expected<void>(fail(reason::not_ready, "nothing is committed yet"));
        }
        const thin_session_options wish{.session = grant->session,
                                        .source = grant->source,
                                        .incarnation = incarnation,
                                        .tokens_max = grant->tokens_max,
                                        .top_k = grant->top_k,
                                        .return_mode = asked.return_mode,
                                        .gate_on_tier = asked.gate_on_tier,
                                        .shared_experts = asked.shared_experts,
                                        .flags_bad_rows = asked.flags_bad_rows,
                                        .call_deadline = grant->call_deadline,
                                        .tokens_per_second = grant->tokens_per_second};
        return desk_.make_place(wish, grant->snapshot)
            .then([this, id = grant->session, incarnation](expected<thin_place> place) -> outcome {
              if (!place) return expected<void>(unexpected_error(place.error()));
              return desk_.attach(id, incarnation, place->shape, std::move(place->address));
            })
            .then([this, context, granted = *grant,
                   service = kj::mv(service)](expected<void> attached) mutable -> expected<void> {
              if (!attached) return attached;
              context.getResults().setSession(kj::mv(service));
              return write_grant(context.getResults().initGrant(), granted);
            });
      });
}

kj::Promise<void> tier_service::resumeSession(ResumeSessionContext context) {
  return answering(place_, context, "resume_session",
                   [this, context](duration_ns) mutable -> kj::Promise<expected<void>> {
                     const session_id session(context.getParams().getSession());
                     const incarnation_id incarnation(context.getParams().getIncarnation());
                     std::string tenant = place_.who.by == link_kind::tls ? place_.who.name : "";
                     return desk_.resume(session, incarnation, std::move(tenant))
                         .then([this, context, incarnation](
                                   expected<session_grant> grant) mutable -> expected<void> {
                           if (!grant) return unexpected_error(grant.error());
                           context.getResults().setSession(kj::heap<session_service>(
                               place_, *grant, incarnation, session_request{}));
                           return write_grant(context.getResults().initGrant(), *grant);
                         });
                   });
}

kj::Promise<void> tier_service::router(RouterContext context) {
  return answering(
      place_, context, "router",
      [this, context](duration_ns) mutable -> kj::Promise<expected<void>> {
        const auto& snapshot = desk_.snapshot();
        if (snapshot == nullptr) return expected<void>(fail(reason::not_ready, "it is starting"));
        const layer_id layer(context.getParams().getLayer());
        const int index = moe_index(snapshot->model, layer);
        if (index < 0)
          return expected<void>(unexpected_error(client::unknown_layer(layer, snapshot->model)));
        // Reading a layer's router from disk takes milliseconds, once; the loop waits for it.
        const auto router = desk_.router(static_cast<std::size_t>(index));
        if (!router) return expected<void>(unexpected_error(router.error()));
        const std::uint32_t first_row = context.getParams().getFirstRow();
        if (first_row >= (*router)->columns)
          return expected<void>(
              fail(reason::limit_exceeded, "first_row", first_row, (*router)->columns - 1));
        client::write_router_rows(context.getResults().initRows(), **router, first_row);
        return expected<void>();
      });
}

kj::Promise<void> tier_service::admin(AdminContext context) {
  return answering(place_, context, "admin",
                   [this, context](duration_ns) mutable -> kj::Promise<expected<void>> {
                     context.getResults().setAdmin(admin_);
                     return expected<void>();
                   });
}

expected<void> tier_service::write_grant(rpc::Tier::Grant::Builder to,
                                         const session_grant& grant) const {
  to.setSession(grant.session.value);
  to.setSource(grant.source.value);
  to.setTokensMax(grant.tokens_max);
  to.setMicroBatches(grant.micro_batches);
  to.setTopK(grant.top_k);
  to.setLeaseNs(grant.lease);
  to.setCallDeadlineNs(grant.call_deadline);
  to.setStepDeadlineNs(grant.step_deadline);
  to.setDeadlineClass(static_cast<std::uint8_t>(grant.urgency) + 1);
  to.setTokensPerSecond(grant.tokens_per_second);
  // The desk's is the grant's or newer: the core publishes before it grants.
  const auto bytes = desk_.snapshot_bytes();
  if (bytes) to.setSnapshot(*bytes);
  return {};
}

}  // namespace moetier::coordinator
