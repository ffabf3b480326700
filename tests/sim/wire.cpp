#include "tests/sim/wire.hpp"

#include <algorithm>
#include <cstring>

#include "tests/sim/fiber.hpp"
#include "transport/exchange/two_sided_source.hpp"
#include "transport/exchange/two_sided_worker.hpp"

namespace moetier::sim {
namespace {

// Payload damage is to be found by the protocol, whatever the carrier checks.
constexpr bool k_checksum = true;

}  // namespace

class wire::link final : public transport::Link {
 public:
  link(wire& plane, std::shared_ptr<endpoint> self) : wire_(plane), self_(std::move(self)) {
    address_.resize(sizeof(endpoint_id));
    std::memcpy(address_.data(), &self_->id, sizeof(endpoint_id));
  }
  ~link() override {
    // A half that is destroyed in good order leaves; its farewell is on the way already.
    wire_.end(self_->id);
  }

  const transport::member_address& address() const noexcept override { return address_; }

  expected<transport::link_peer> connect(const transport::member_address& address,
                                         std::shared_ptr<transport::bank_memory> memory) override {
    endpoint_id id = 0;
    if (address.size() != sizeof id) return fail(reason::frame_malformed, "an address");
    std::memcpy(&id, address.data(), sizeof id);
    if (self_->lost.contains(id)) {
      return fail(reason::carrier_unavailable, "model", "the member is gone");
    }
    peers_[++last_] = {id, std::move(memory), wire_.breaks_between(self_->id, id)};
    return last_;
  }
  void disconnect(transport::link_peer id) override { peers_.erase(id); }

  transport::link_send send(transport::link_peer id, std::uint32_t bank, std::size_t bytes,
                            transport::link_place) override {
    peer& p = peers_.at(id);
    if (is_lost(p)) return transport::link_send::failed;
    frame f;
    const auto head = p.memory->head(bank);
    std::copy(head.begin(), head.end(), f.head.begin());
    const auto payload = p.memory->out(bank).first(bytes);
    f.payload.assign(payload.begin(), payload.end());
    if (!self_->gone) wire_.carry(self_->id, p.id, std::move(f), p.breaks);
    return transport::link_send::done;
  }

  void progress(transport::FrameSink& sink) override {
    while (!self_->inbox.empty()) {
      const frame f = std::move(self_->inbox.front());
      self_->inbox.pop_front();
      const transport::landing to = sink.admit(f.head, f.payload.size());
      if (!to.admitted) continue;
      std::copy(f.payload.begin(), f.payload.end(), to.region.begin());
      sink.landed(to.place, true);
    }
    for (auto& [id, p] : peers_) {
      if (is_lost(p) && !std::exchange(p.told, true)) sink.lost(id);
    }
  }

  // On a source's fiber: a turn of the simulation.
  void wait(transport::FrameSink& sink, std::chrono::nanoseconds,
            std::chrono::nanoseconds limit) override {
    if (sink.has_work() || !self_->inbox.empty()) return;
    const time_ns until = wire_.clock_.now() + static_cast<duration_ns>(limit.count());
    wire_.clock_.at(until, self_->on_change);
    fiber::wait();
    progress(sink);  // as carriers do that were woken by what came
  }
  void wake() noexcept override {}
  std::uint64_t frames_dropped() const noexcept override { return 0; }
  std::uint64_t requests_left() const noexcept override { return 0; }

 private:
  struct peer {
    endpoint_id id = 0;
    std::shared_ptr<transport::bank_memory> memory;
    std::uint64_t breaks = 0;  // before it was connected
    bool told = false;         // of its loss
  };
  bool is_lost(const peer& p) const {
    const auto seen = self_->breaks_seen.find(p.id);
    return self_->lost.contains(p.id) ||
           (seen != self_->breaks_seen.end() && seen->second > p.breaks);
  }
  wire& wire_;
  std::shared_ptr<endpoint> self_;
  transport::member_address address_;
  std::map<transport::link_peer, peer> peers_;
  transport::link_peer last_ = 0;
};

std::shared_ptr<wire::endpoint> wire::join(std::function<void()> on_change) {
  auto made = std::make_shared<endpoint>();
  made->id = ++last_;
  made->on_change = std::move(on_change);
  endpoints_[made->id] = made;
  return made;
}

wire::endpoint* wire::find(endpoint_id id) {
  const auto at = endpoints_.find(id);
  const auto held = at == endpoints_.end() ? nullptr : at->second.lock();
  return held == nullptr || held->gone ? nullptr : held.get();
}

std::unique_ptr<transport::SourceHalf> wire::make_source(const transport::source_options& options,
                                                         std::function<void()> on_change,
                                                         endpoint_id& id) {
  auto self = join(std::move(on_change));
  id = self->id;
  auto made = transport::two_sided_source::make(options, k_checksum,
                                                std::make_unique<link>(*this, std::move(self)));
  return made ? std::move(*made) : nullptr;
}

std::unique_ptr<transport::WorkerHalf> wire::make_worker(const transport::worker_options& options,
                                                         std::function<void()> on_change,
                                                         endpoint_id& id) {
  auto self = join(std::move(on_change));
  id = self->id;
  auto made = transport::two_sided_worker::make(options, k_checksum,
                                                std::make_unique<link>(*this, std::move(self)));
  return made ? std::move(*made) : nullptr;
}

void wire::end(endpoint_id id) {
  const auto at = endpoints_.find(id);
  if (at == endpoints_.end()) return;
  if (const auto held = at->second.lock()) {
    held->gone = true;
    held->on_change = nullptr;
  }
  endpoints_.erase(at);
  if (dice_.chance(rates.silent_death)) return;
  for (const auto& [other, weak] : endpoints_) {
    clock_.after(dice_.below(20 * k_millisecond), [this, other, id] {
      endpoint* e = find(other);
      if (e == nullptr) return;
      e->lost.insert(id);
      if (e->on_change) e->on_change();
    });
  }
}

std::uint64_t wire::breaks_between(endpoint_id a, endpoint_id b) const {
  const auto at = breaks_.find(std::minmax(a, b));
  return at == breaks_.end() ? 0 : at->second;
}

void wire::break_between(endpoint_id a, endpoint_id b) {
  const std::uint64_t breaks = ++breaks_[std::minmax(a, b)];
  for (const auto& [here, there] : {std::pair(a, b), std::pair(b, a)}) {
    clock_.after(dice_.below(20 * k_millisecond), [this, here = here, there = there, breaks] {
      endpoint* e = find(here);
      if (e == nullptr) return;
      e->breaks_seen[there] = std::max(e->breaks_seen[there], breaks);
      if (e->on_change) e->on_change();
    });
  }
}

void wire::carry(endpoint_id from, endpoint_id to, frame what, std::uint64_t breaks) {
  if (!what.payload.empty() && dice_.chance(rates.damage)) {
    what.payload[dice_.below(what.payload.size())] ^= static_cast<std::byte>(1u << dice_.below(8));
  }
  const auto deliver = [this, from, to, breaks, f = std::make_shared<frame>(std::move(what))] {
    endpoint* e = find(to);
    if (e == nullptr || breaks_between(from, to) != breaks) return;
    e->inbox.push_back(*f);
    if (e->on_change) e->on_change();
  };
  const auto cut = cuts_.find({from, to});
  const time_ns free_at = cut == cuts_.end() ? 0 : cut->second;
  // In order between two members, as every carrier's connections are; a doubled one comes whenever.
  time_ns& last = arrivals_[{from, to}];
  last = std::max({last + 1, free_at, clock_.now()}) +
         dice_.between(20 * k_microsecond, k_millisecond);
  clock_.at(last, deliver);
  if (dice_.chance(rates.repeat)) clock_.after(dice_.below(300 * k_millisecond), deliver);
}

}  // namespace moetier::sim
