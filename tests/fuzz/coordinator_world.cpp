#include "tests/fuzz/coordinator_world.hpp"

#include <algorithm>

#include "tests/fuzz/remote_message.hpp"
#include "tests/fuzz/wire_legal.hpp"

namespace moetier::fuzz {

using namespace coordinator;

namespace {

constexpr std::size_t k_said_kept = 64;
constexpr std::size_t k_settle_rounds_max = 64;
constexpr const char* k_plan_file =
    R"({"format":1,"experts":4,"slots_per_worker":[4,4],"layers":[{"layer":0,"slots":)"
    R"([0,1,2,3,0,1,2,-1]},{"layer":1,"slots":[0,1,2,3,3,2,1,0]}]})";

}  // namespace

coordinator_world::coordinator_world(std::uint8_t form) {
  options_.model = small_model();
  options_.workers_expected = 1 + (form & 1 ? 0 : 1);
  options_.node = 99;
  options_.tokens_max = 64;
  options_.sessions_max = 3;
  options_.sources_max = 3;
  options_.lora = (form & 4) != 0;
  if ((form & 8) != 0 && options_.workers_expected == 2) options_.placement_file_text = k_plan_file;
  options_.placement_file_name = "plan.json";
  for (std::uint64_t i = 0; i < 3; ++i) {
    process p;
    // Long enough to lie apart, where a name that is read too late shows.
    p.hello.name = std::string(1, static_cast<char>('a' + i)) + " worker with a long name";
    p.hello.incarnation = incarnation_id(11 + i);
    p.hello.node = 11 + i;
    p.hello.model_fingerprint = options_.model.fingerprint;
    p.hello.checkpoint_digest = 0xd1;
    p.hello.slots = 4;
    p.hello.environment = toy::environment_document();
    p.hello.carrier = "in_process";
    p.hello.address = {1, 2, 3};
    p.hello.heartbeat_interval_ns = options_.heartbeat_interval;
    p.hello.heartbeat_timeout_ns = options_.heartbeat_timeout;
    processes_.push_back(std::move(p));
  }
  start();
}

void coordinator_world::start() {
  pending_.reset();
  published_.reset();
  open_tokens_.clear();  // who asked the old one has lost it
  stopped_ = false;
  for (process& p : processes_) {
    p.link = 0;
    p.inbox.clear();
  }
  core_ = std::make_unique<core>(options_, disk_);
  take(core_->start(now_));
}
void coordinator_world::restart() { start(); }

void coordinator_world::step(const event& what) { take(core_->step(what, now_)); }

void coordinator_world::pass(duration_ns time) {
  now_ += time;
  step(time_passed{});
  core_->view(now_);
}

void coordinator_world::shut_down() {
  step(coordinator::shut_down{});
  check(stopped_, "a core that is shut down goes on");
  check(open_tokens_.empty(), "a request is never answered");
}

// --- workers ---

coordinator_world::process& coordinator_world::some(byte_source& from) {
  return processes_[from.below(static_cast<std::uint32_t>(processes_.size()))];
}

void coordinator_world::connect(byte_source& from) {
  process& p = some(from);
  if (p.link != 0) {
    const link_number old = std::exchange(p.link, 0);
    if (from.coin()) step(worker_link_lost{old});
  }
  p.link = ++last_link_;
  p.inbox.clear();
  control::hello hello = p.hello;
  switch (from.u8()) {
    case 0xf0: p.hello.incarnation = incarnation_id(p.hello.incarnation.value + 100); break;
    case 0xf1: p.hello.held.clear(); break;
    case 0xf2: hello.highest_epoch = epoch_number(from.any()); break;
    case 0xf3: hello.slots = static_cast<std::uint32_t>(from.any()); break;
    case 0xf4: hello.held_checksums.assign(from.below(20), from.any()); break;
    case 0xf5: hello.environment.assign(from.below(200), from.u8()); break;
    case 0xf6: hello.name = from.text(66); break;
    case 0xf7:
      hello.held.push_back({generation_number(from.any()), plan_hash(from.any()),
                            static_cast<control::generation_state>(from.below(4))});
      break;
    case 0xf8: {
      control::source_attachment s = control::author(from.u8()).attachment();
      s.source = source_id(static_cast<std::uint16_t>(from.below(4)));
      s.session = session_id(1 + from.below(70));
      hello.sources.push_back(s);
      break;
    }
    case 0xf9: hello.adapters.push_back({from.below(4), "k", "/k"}); break;
    case 0xfa: hello.address.assign(from.below(200) * std::size_t{16}, 7); break;
    case 0xfb: hello.resolution = from.any(); break;
    default: break;
  }
  if (hello.name == p.hello.name) hello.incarnation = p.hello.incarnation;
  say(p, std::move(hello));
}

void coordinator_world::lose_link(byte_source& from) {
  process& p = some(from);
  if (p.link == 0) return;
  p.inbox.clear();
  step(worker_link_lost{std::exchange(p.link, 0)});
}

void coordinator_world::say(process& by, control::message m) {
  auto arrived = travelled(m);
  if (!arrived) return;  // no such message reaches a core
  m = std::move(*arrived);
  said_.push_back(m);
  if (said_.size() > k_said_kept) said_.pop_front();
  step(worker_message{by.link, std::move(m)});
}

void coordinator_world::answer(byte_source& from) {
  process& p = some(from);
  const std::uint8_t how = from.u8();
  if (p.link == 0 || p.inbox.empty()) return;
  const control::message command = std::move(p.inbox.front());
  p.inbox.pop_front();
  obey(p, command, how);
}

void coordinator_world::settle() {
  for (std::size_t round = 0; round < k_settle_rounds_max; ++round) {
    bool idle = true;
    if (pending_) {
      write(true);
      idle = false;
    }
    for (process& p : processes_) {
      if (p.link == 0 || p.inbox.empty()) continue;
      const control::message command = std::move(p.inbox.front());
      p.inbox.pop_front();
      obey(p, command, 0);
      idle = false;
    }
    if (idle) return;
  }
}

// `how`: 0 to 0xef honestly, above in ways of its own.
void coordinator_world::obey(process& p, const control::message& m, std::uint8_t how) {
  if (how == 0xff) return;  // not at all
  if (how >= 0xfc) {
    epoch_number highest;  // a refusal of an older attempt would go unread
    if (const auto* prepare = std::get_if<control::prepare>(&m)) highest = prepare->epoch;
    if (const auto* commit = std::get_if<control::commit>(&m)) highest = commit->epoch;
    return say(p, control::refused{static_cast<control::refused::why>(how % 7), highest,
                                   generation_number(1), p.hello.incarnation, "text"});
  }
  if (const auto* prepare = std::get_if<control::prepare>(&m)) {
    auto sums = checksums_of(placement_of(prepare->placement), p.hello.name);
    if (how == 0xf0 && !sums.empty()) sums.back() ^= 2;
    if (how == 0xf1) sums.push_back(5);
    if (how == 0xf2 && !sums.empty()) sums.front() = 0;
    const std::uint64_t shared = prepare->shared_experts == 0 && how != 0xf3 ? 0 : 0x5a;
    p.hello.held_checksums = sums;
    p.hello.held_shared_digest = shared;
    const auto report = resolution::read_report(text_of(prepare->resolution), "the report");
    check(report.has_value(), "a report goes out that nobody can read");
    p.hello.resolution = report->resolution_id;
    return say(p, control::prepared{prepare->epoch, prepare->generation, prepare->plan,
                                    p.hello.incarnation, sums, shared});
  }
  if (const auto* commit = std::get_if<control::commit>(&m)) {
    p.hello.held = {{commit->generation, commit->plan, control::generation_state::serving}};
    return say(p, control::committed{commit->epoch, commit->generation, commit->plan,
                                     p.hello.incarnation});
  }
  if (const auto* attach = std::get_if<control::attach_source>(&m)) {
    const bool accepts = how < 0xf0;
    if (accepts && p.hello.sources.size() < 8) p.hello.sources.push_back(attach->source);
    return say(p, control::source_attached{p.hello.incarnation, attach->source.source,
                                           attach->source.incarnation, accepts, ""});
  }
  if (const auto* detach = std::get_if<control::detach_source>(&m)) {
    std::erase_if(p.hello.sources, [&](const auto& s) { return s.source == detach->source; });
    return;
  }
  if (const auto* load = std::get_if<control::load_adapter>(&m)) {
    const bool loads = how < 0xf0;
    if (loads && p.hello.adapters.size() < 8) p.hello.adapters.push_back(load->adapter);
    return say(p,
               control::adapter_state{p.hello.incarnation, load->adapter.adapter, loads, "text"});
  }
  if (const auto* drop = std::get_if<control::drop_adapter>(&m)) {
    std::erase_if(p.hello.adapters, [&](const auto& a) { return a.adapter == drop->adapter; });
  }
}

void coordinator_world::beat(byte_source& from) {
  process& p = some(from);
  const std::uint8_t how = from.u8();
  if (p.link == 0) return;
  if (how == 0xff) return say(p, control::leaving{p.hello.incarnation});
  if (how >= 0xe0) {
    control::load_report report;
    report.incarnation = p.hello.incarnation;
    report.generation = generation_number(how % 3);
    if (disk_) report.plan = disk_->plan;
    report.counts.assign(how % 4 == 0 ? 8 : how % 32, from.any());
    report.rows_total = from.any();
    return say(p, std::move(report));
  }
  control::heartbeat m;
  m.incarnation = p.hello.incarnation;
  m.sequence = how < 0xc0 ? ++p.sequence : from.any();
  m.engine_tick = how < 0xb0 ? ++p.tick : p.tick;
  m.oldest_batch_ns = how < 0xb0 ? 0 : from.any();
  m.device = static_cast<control::device_state>(how == 0xdf ? 2 : 0);
  say(p, m);
}

void coordinator_world::say_anything(byte_source& from) {
  process& p = some(from);
  std::optional<control::message> m;
  if (from.coin()) {
    m = segment_message(from);
  } else {
    m = authored_message(from);
  }
  if (!m) return;
  if (from.coin()) set_incarnation(*m, p.hello.incarnation);
  if (from.below(4) != 0) set_epoch(*m, from, disk_ ? disk_->epoch : epoch_number());
  if (p.link != 0) say(p, std::move(*m));
}

void coordinator_world::repeat(byte_source& from) {
  process& p = some(from);
  if (p.link == 0 || said_.empty()) return;
  control::message m = said_[from.u8() % said_.size()];
  if (from.coin()) set_incarnation(m, p.hello.incarnation);
  say(p, std::move(m));
}

// --- the disk, and what the core says ---

void coordinator_world::write(bool done) {
  if (!pending_) return;
  const write_record w = std::move(*pending_);
  pending_.reset();
  if (done) disk_ = w.value;
  step(record_written{w.value.epoch, done});
}

void coordinator_world::take(const effects& done) {
  for (const effect& e : done) {
    std::visit([this](const auto& one) { on(one); }, e);
  }
}

void coordinator_world::on(const send_to_worker& e) {
  check_wire_legal(e.body);
  const auto to = std::find_if(processes_.begin(), processes_.end(),
                               [&](const process& p) { return p.link == e.link; });
  if (const auto* commit = std::get_if<control::commit>(&e.body)) {
    check(disk_ && disk_->generation == commit->generation && disk_->plan == commit->plan &&
              disk_->epoch == commit->epoch,
          "a plan is committed that is not durable");
  }
  if (to != processes_.end()) to->inbox.push_back(e.body);
}

void coordinator_world::on(const cut_worker_link& e) {
  for (process& p : processes_) {
    if (p.link != e.link) continue;
    p.link = 0;
    p.inbox.clear();
  }
}

void coordinator_world::on(const write_record& e) {
  check(!pending_, "two records are written at once");
  const epoch_number held = disk_ ? disk_->epoch : epoch_number();
  check(e.expected == held, "a record is compared with another one than is there");
  check(e.value.epoch >= held, "the durable epoch falls");
  check(!disk_ || e.value.next_session >= disk_->next_session, "session ids come again");
  const auto read = record_from_bytes(to_bytes(e.value));
  check(read && *read == e.value, "a record changes on the disk");
  pending_ = e;
}

void coordinator_world::on(const publish_snapshot& e) {
  check(e.snapshot != nullptr, "no snapshot is published");
  check(!published_ || transport::is_newer(*e.snapshot, *published_), "an older snapshot follows");
  const auto read = transport::snapshot_from_bytes(transport::to_bytes(*e.snapshot));
  check(read && *read == *e.snapshot, "a snapshot goes out that no source can read");
  check(disk_ && e.snapshot->epoch <= disk_->epoch && e.snapshot->plan == disk_->plan,
        "a snapshot is shown that is not durable");
  published_ = e.snapshot;
}

void coordinator_world::on(const answer_session& e) {
  check(open_tokens_.erase(e.token) == 1, "a request is answered twice, or was never asked");
  check(!e.grant || e.grant->snapshot != nullptr, "a session is granted on nothing");
}
void coordinator_world::on(const answer_done& e) {
  check(open_tokens_.erase(e.token) == 1, "a request is answered twice, or was never asked");
}
void coordinator_world::on(const stopped&) {
  check(!stopped_, "a core stops twice");
  stopped_ = true;
}

}  // namespace moetier::fuzz
