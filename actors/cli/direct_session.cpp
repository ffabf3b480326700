#include "actors/cli/direct_session.hpp"

#include "actors/cli/tier_address.hpp"
#include "actors/process/random.hpp"

namespace moetier::cli {
namespace {

constexpr duration_ns k_close_limit = k_second;

}  // namespace

expected<std::unique_ptr<direct_session>> direct_session::open(const direct_wish& wish,
                                                               const config::settings& settings) {
  std::unique_ptr<direct_session> d(new direct_session);
  auto link = reach(wish.address, settings.security.rpc, wish.limit);
  if (!link) return tl::unexpected(link.error());
  d->link_ = std::move(*link);
  const incarnation_id incarnation(random_bits());
  const auto granted = d->link_->open_session({.tenant = wish.tenant,
                                               .incarnation = incarnation,
                                               .tokens_max = wish.tokens_max,
                                               .micro_batches = wish.micro_batches,
                                               .return_mode = static_cast<std::uint8_t>(wish.mode),
                                               .gate_on_tier = wish.gate_on_tier,
                                               .shared_experts = wish.shared_experts,
                                               .urgency = wish.urgency},
                                              wish.limit);
  if (!granted) return tl::unexpected(granted.error());
  d->session_ = granted->session;

  auto carrier = transport::open_carrier(granted->snapshot->carrier,
                                         {.listen = settings.transport.listen,
                                          .checksum_payload = settings.transport.checksum == "on",
                                          .allow_tcp = settings.transport.allow_tcp != "off"});
  if (!carrier) return tl::unexpected(carrier.error());
  d->carrier_ = std::move(*carrier);
  client::tier_link* const news = d->link_.get();
  d->routers_ = std::make_unique<client::router_cache>(*news);
  client::router_source router;
  if (wish.gate_on_tier) {
    router = [cache = d->routers_.get(), layers = granted->snapshot->model.moe_layers](
                 std::size_t index) { return cache->get(layers[index]); };
  }
  auto source = client::source_session::open(
      *d->carrier_,
      {.session = granted->session,
       .source = granted->source,
       .incarnation = incarnation,
       .tokens_max = granted->tokens_max,
       .micro_batches = granted->micro_batches,
       .top_k = granted->top_k,
       .mode = wish.mode,
       .shared_experts = wish.shared_experts,
       .call_deadline = granted->call_deadline,
       .tokens_per_second =
           [rate = granted->tokens_per_second] { return rate->load(std::memory_order_relaxed); },
       .replays_max = settings.replay.max,
       .spin = settings.transport.spin,
       .wait_newer = [news, id = granted->session](
                         const transport::routing_snapshot& seen,
                         duration_ns limit) { return news->wait_newer(id, seen, limit); },
       .newest = [news] { return news->newest(); },
       .router = std::move(router)},
      granted->snapshot);
  if (!source) return tl::unexpected(source.error());
  d->source_ = std::move(*source);
  const auto attached =
      d->link_->attach(granted->session, d->source_->shape(), d->source_->address(), wish.limit);
  if (!attached) return tl::unexpected(attached.error());
  return d;
}

direct_session::~direct_session() {
  if (link_ == nullptr || session_ == session_id{}) return;
  if (source_) source_->cancel();
  // A session that cannot be closed ends with its lease.
  const auto closed = link_->close_session(session_, k_close_limit);
  static_cast<void>(closed);
}

}  // namespace moetier::cli
