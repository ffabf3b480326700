// Sequences into the worker's core: a coordinator that says anything, in any order, and a shell
// that keeps to its rules (what it was asked to do ends later, well or badly, also after it was
// called off). A byte chooses each act.

#include "workers/core/core.hpp"

#include <deque>
#include <set>

#include "tests/fuzz/byte_source.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/fuzz/remote_message.hpp"
#include "tests/fuzz/wire_legal.hpp"
#include "tests/schemas/resolution/toy_environment.hpp"

namespace moetier::fuzz {
namespace {

using namespace workers;

constexpr incarnation_id k_self{0xabc};
constexpr std::size_t k_acts_max = 160;
// Making one costs ten times what the core does with it, and an input's time is the core's to use.
constexpr std::size_t k_authored_max = 6;

std::vector<std::uint8_t> placement_bytes(const std::string& second, std::uint32_t slots) {
  const auto p = eplb::placement::make(
      4, {{worker_id(0), "a", 0, 4 - slots}, {worker_id(1), second, 4 - slots, slots}},
      {{layer_id(3), {0, 1, 2, 3}}});
  check(p.has_value(), "the seed's placement is none");
  const auto bytes = p->canonical_bytes();
  const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return {first, first + bytes.size()};
}

class shell final {
 public:
  shell() : core_(options()) {}

  void act(byte_source& from) {
    now_ += from.below(4) * 30 * k_millisecond;
    switch (from.below(16)) {
      case 0: return step(linked_ ? event(link_lost{}) : event(link_up{}), !linked_);
      case 1: now_ += from.below(64) * 100 * k_millisecond; return step(time_passed{});
      case 2:
      case 3:
      case 4: return tell(command(from));
      case 5: {
        if (++authored_ > k_authored_max) return;
        control::message m = authored_message(from);
        if (from.coin()) set_incarnation(m, k_self);
        if (from.coin()) set_epoch(m, from, core_.summary().epoch);
        return tell(m);
      }
      case 6:
        if (auto m = segment_message(from)) tell(*m);
        return;
      case 7:
      case 8: return end_load(from);
      case 9: return end_attach(from);
      case 10: return end_adapter(from);
      case 11: return progress(from);
      case 12:
        if (!releases_.empty()) step(pages_released{take(releases_, from)});
        return;
      case 13:
        if (drains_ && from.coin()) step(engine_drained{});
        return;
      case 14:
        if (from.u8() == 0) step(shut_down{});
        return;
      default: return step(time_passed{});
    }
  }

 private:
  static core_options options() {
    core_options o;
    o.name = "b";
    o.incarnation = k_self;
    o.node = 5;
    o.slots = 2;
    o.environment = toy::environment_document();
    o.carrier = "ucx";
    return o;
  }

  // What a coordinator says, with numbers near those in force.
  control::message command(byte_source& from) {
    static const std::vector<std::uint8_t> placements[] = {
        placement_bytes("b", 2), placement_bytes("b", 1), placement_bytes("c", 2), {1, 2, 3}};
    static const std::vector<std::uint8_t> reports[] = {
        toy::resolution_document(5), toy::resolution_document(6), {'{', '}'}};
    const auto in_force = core_.summary();
    const epoch_number epoch = near(from, in_force.epoch);
    const generation_number generation = near(from, in_force.generation);
    const plan_hash plan(from.below(3));
    const incarnation_id whom = from.below(16) == 0 ? incarnation_id(1) : k_self;
    const source_id source(static_cast<std::uint16_t>(from.below(3) * 1023));
    switch (from.below(13)) {
      case 0: return control::welcome{worker_id(1), whom, epoch, 2, 2};
      case 1:
        return control::prepare{epoch,
                                generation,
                                plan,
                                whom,
                                placements[from.below(8) % 4],
                                reports[from.below(6) % 3],
                                from.below(2)};
      case 2: return control::abort_plan{epoch, generation, plan, whom};
      case 3: return control::commit{epoch, generation, plan, whom};
      case 4: return control::release{epoch, generation, whom};
      case 5: {
        control::source_attachment s;
        s.source = source;
        s.session = session_id(1 + from.below(3));
        s.incarnation = incarnation_id(from.below(3));
        s.rows_max = from.below(2);
        return control::attach_source{epoch, s};
      }
      case 6: return control::detach_source{epoch, source, incarnation_id(from.below(3))};
      case 7:
        return control::heartbeat_answer{from.any(), epoch, generation,
                                         static_cast<control::log_threshold>(from.below(6))};
      case 8: return control::probe{epoch, whom};
      case 9: return control::load_adapter{epoch, {from.u8(), "n", from.coin() ? "/d" : "/e"}};
      case 10: return control::drop_adapter{epoch, from.u8()};
      case 11:
        return control::refused{static_cast<control::refused::why>(from.below(7)), epoch,
                                generation, whom, "text"};
      default: return control::hello{};
    }
  }

  template <class T>
  static T take(std::deque<T>& all, byte_source& from) {
    const auto at = all.begin() + static_cast<std::ptrdiff_t>(from.u8() % all.size());
    T one = std::move(*at);
    all.erase(at);
    return one;
  }

  void end_load(byte_source& from) {
    if (loads_.empty()) return;
    const load_plan l = take(loads_, from);
    const std::uint32_t ending = from.below(8);
    if (ending == 0) {
      const reason why = from.coin() ? reason::backend_unresolved : reason::weight_mismatch;
      return step(plan_load_failed{l.generation, l.plan, {status::internal, why, "it failed"}});
    }
    step(plan_loaded{l.generation, l.plan, {21 + ending, 22}, l.shared_experts});
  }
  void end_attach(byte_source& from) {
    if (attaches_.empty()) return;
    const control::source_attachment s = take(attaches_, from);
    step(source_attach_done{s.source, s.incarnation, from.below(4) != 0, "text"});
  }
  void end_adapter(byte_source& from) {
    if (adapters_.empty()) return;
    const control::held_adapter a = take(adapters_, from);
    step(adapter_load_done{a, from.below(4) != 0, "text"});
  }
  void progress(byte_source& from) {
    engine_progress p;
    p.tick = from.any();
    p.rows_total = from.any();
    p.oldest_batch_ns = from.any();
    p.counted_generation = near(from, core_.summary().generation);
    p.counts.assign(from.below(4), from.any());
    p.device = static_cast<control::device_state>(from.below(3));
    step(p);
  }

  void tell(const control::message& m) {
    auto arrived = travelled(m);
    if (arrived) step(coordinator_message{std::move(*arrived)});
  }
  void step(const event& what, bool links = false) {
    if (std::holds_alternative<link_up>(what) || std::holds_alternative<link_lost>(what))
      linked_ = links;
    const worker_summary before = core_.summary();
    const effects done = core_.step(what, now_);
    check(core_.summary().epoch >= before.epoch, "the highest epoch fell");
    check(core_.summary().generation >= before.generation, "an older generation serves");
    check(!ended_ || done.empty(), "a core that has ended acts");
    bool dropped = false;
    for (const effect& e : done) {
      dropped = dropped || std::holds_alternative<drop_link>(e);
      std::visit([this](const auto& one) { on(one); }, e);
    }
    if (dropped) step(link_lost{});
  }

  void on(const send& e) {
    check(linked_, "a message without a link");
    check_wire_legal(e.body);
  }
  void on(const load_plan& e) {
    check(!serving_ || e.generation > *serving_, "a plan is loaded that is older than what serves");
    loaded_or_loading_.insert({e.generation, e.plan});
    loads_.push_back(e);
  }
  void on(const cancel_load& e) {
    check(loaded_or_loading_.erase({e.generation, e.plan}) == 1, "a load is called off twice");
  }
  void on(const serve_generation& e) {
    check(loaded_or_loading_.contains({e.generation, e.plan}), "a plan serves that nobody loaded");
    check(!serving_ || e.generation > *serving_, "an older generation is served");
    serving_ = e.generation;
  }
  void on(const release_pages& e) {
    check(serving_ && e.older_than <= *serving_, "what serves is released");
    if (releases_.size() < k_acts_max) releases_.push_back(e.older_than);
  }
  void on(const workers::attach_source& e) {
    check(!places_.contains(e.source.source), "a place is given twice");
    check(e.source.source.value < control::k_sources_listed_max, "a place beyond the table");
    places_.insert(e.source.source);
    attaches_.push_back(e.source);
  }
  void on(const workers::detach_source& e) {
    check(places_.erase(e.source) == 1, "a place is taken that nobody has");
  }
  void on(const workers::load_adapter& e) {
    held_.insert(e.adapter.adapter);
    check(held_.size() <= control::k_adapters_max, "more adapters than there are places");
    adapters_.push_back(e.adapter);
  }
  void on(const workers::drop_adapter& e) { held_.erase(e.adapter); }
  void on(const drain_engine&) { drains_ = true; }
  void on(const stopped&) { ended_ = true; }
  template <class Other>
  void on(const Other&) {}

  core core_;
  time_ns now_ = 50 * k_second;
  bool linked_ = false;
  bool drains_ = false;
  bool ended_ = false;
  std::optional<generation_number> serving_;
  std::set<std::pair<generation_number, plan_hash>> loaded_or_loading_;
  std::set<source_id> places_;
  std::set<std::uint32_t> held_;
  std::deque<load_plan> loads_;
  std::size_t authored_ = 0;  // messages of random values
  std::deque<control::source_attachment> attaches_;
  std::deque<control::held_adapter> adapters_;
  std::deque<generation_number> releases_;
};

}  // namespace

void run(std::span<const std::uint8_t> bytes) {
  byte_source from(bytes);
  shell worker;
  for (std::size_t i = 0; i < k_acts_max && !from.empty(); ++i) worker.act(from);
}

std::vector<input> seeds() {
  // link up, welcome, prepare, loaded, commit, a source, its place; then the next generation.
  const input serves = {
      0, 0,                                             // link up
      0, 2, 2, 1, 0,  1, 0, 0,                          // welcome
      0, 2, 1, 2, 1,  1, 0, 1, 0, 0, 0,                 // prepare generation 1
      0, 7, 0, 1,                                       // it is loaded
      0, 2, 1, 2, 1,  1, 0, 3,                          // commit
      0, 3, 1, 1, 0,  1, 0, 5, 0, 1, 0, 0, 9, 0, 1,     // a source, attached
      1, 1, 3, 0, 11, 2, 9, 2, 9, 2, 9, 1, 1, 2, 9, 0,  // time, load
  };
  const auto then = [](input all, std::initializer_list<input> parts) {
    for (const input& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  };
  const input next = {
      0, 2, 1, 2, 2, 1, 0, 1, 0, 0, 0,  // prepare the next generation
      0, 7, 0, 1,                       // it is loaded
      0, 2, 1, 2, 2, 1, 0, 3,           // commit
  };
  const input release = {0, 4, 1, 1, 0, 1, 0, 4, 0, 12, 0};  // and the pages are free
  input mixed;
  for (unsigned i = 0; i < 600; ++i) mixed.push_back(static_cast<std::uint8_t>(i * 167 + i / 7));
  return {serves, then(serves, {next, release, next}), then(serves, {next, next, release}), mixed};
}

}  // namespace moetier::fuzz
