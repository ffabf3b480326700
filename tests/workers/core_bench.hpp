#pragma once
// The worker's control core on a bench: events in, effects seen, nothing else. Thread: owner.

#include <memory>

#include "tests/schemas/resolution/toy_environment.hpp"
#include "workers/core/core.hpp"

namespace moetier::workers {

inline constexpr incarnation_id k_self{0xabc};

class bench {
 public:
  bench() {
    options.name.assign(1, 'b');
    options.incarnation = k_self;
    options.node = 5;
    options.slots = 2;
  }
  void start() { core_ = std::make_unique<core>(options); }
  void step(const event& e) {
    for (effect& f : core_->step(e, now)) seen.push_back(std::move(f));
  }
  void tell(control::message m) { step(coordinator_message{std::move(m)}); }
  void join(std::uint64_t epoch = 1) {
    start();
    step(link_up{});
    tell(control::welcome{worker_id(1), k_self, epoch_number(epoch), 2, 2});
    seen.clear();
  }
  control::prepare prepare_of(std::uint64_t epoch, std::uint64_t generation = 1,
                              std::uint64_t hash = 7, const std::string& name = "b") const {
    const auto p = eplb::placement::make(4, {{worker_id(0), "a", 0, 2}, {worker_id(1), name, 2, 2}},
                                         {{layer_id(3), {0, 1, 2, 3}}});
    const auto bytes = p->canonical_bytes();
    const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
    return {epoch_number(epoch),           generation_number(generation), plan_hash(hash), k_self,
            {first, first + bytes.size()}, toy::resolution_document()};
  }
  control::commit commit_of(std::uint64_t epoch, std::uint64_t generation = 1,
                            std::uint64_t hash = 7) const {
    return {epoch_number(epoch), generation_number(generation), plan_hash(hash), k_self};
  }
  void load(std::uint64_t generation = 1, std::uint64_t hash = 7) {
    step(plan_loaded{generation_number(generation), plan_hash(hash), {21, 22}});
  }
  void serve() {
    join();
    tell(prepare_of(1));
    load();
    tell(commit_of(1));
    seen.clear();
  }
  static control::source_attachment source(std::uint16_t place, std::uint64_t incarnation = 9) {
    control::source_attachment s;
    s.source = source_id(place);
    s.session = session_id(1);
    s.incarnation = incarnation_id(incarnation);
    return s;
  }
  void attach(std::uint16_t place, std::uint64_t incarnation = 9) {
    tell(control::attach_source{epoch_number(1), source(place, incarnation)});
    step(source_attach_done{source_id(place), incarnation_id(incarnation), true, ""});
  }

  template <class Effect>
  std::vector<Effect> all() const {
    std::vector<Effect> found;
    for (const effect& e : seen) {
      if (const auto* f = std::get_if<Effect>(&e)) found.push_back(*f);
    }
    return found;
  }
  template <class Message>
  std::vector<Message> said() const {
    std::vector<Message> found;
    for (const send& s : all<send>()) {
      if (const auto* f = std::get_if<Message>(&s.body)) found.push_back(*f);
    }
    return found;
  }
  worker_summary summary() const { return core_->summary(); }

  core_options options;
  time_ns now = 50 * k_second;
  std::vector<effect> seen;

 private:
  std::unique_ptr<core> core_;
};

}  // namespace moetier::workers
