// Members: who may join, which process stands for which name, and when one is given up. Observation
// alone changes nothing for sources: a loss takes effect with the epoch that makes it durable.

#include <algorithm>
#include <type_traits>

#include <fmt/core.h>

#include "coordinator/core/state.hpp"
#include "schemas/base/assert.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::coordinator {
namespace {

constexpr std::size_t k_parked_hellos_max = std::size_t{4} * k_workers_max;
constexpr std::size_t k_quarantined_max = 256;

template <class Message>
constexpr bool k_said_by_workers =
    std::is_same_v<Message, control::refused> || std::is_same_v<Message, control::prepared> ||
    std::is_same_v<Message, control::committed> ||
    std::is_same_v<Message, control::source_attached> ||
    std::is_same_v<Message, control::adapter_state> ||
    std::is_same_v<Message, control::heartbeat> || std::is_same_v<Message, control::load_report> ||
    std::is_same_v<Message, control::leaving>;

template <class Message>
incarnation_id speaker_of(const Message& m) {
  if constexpr (std::is_same_v<Message, control::source_attached>) {
    return m.worker_incarnation;
  } else {
    return m.incarnation;
  }
}

}  // namespace

void core::state::on(const worker_message& e, time_ns now) {
  if (starting) {  // R12: nobody is answered yet
    if (std::holds_alternative<control::hello>(e.body) && parked.size() < k_parked_hellos_max) {
      parked.push_back(e);
    }
    return;
  }
  std::visit(
      [&](const auto& m) {
        using message_type = std::decay_t<decltype(m)>;
        if constexpr (std::is_same_v<message_type, control::hello>) {
          hear(e.link, m, now);
        } else if constexpr (k_said_by_workers<message_type>) {
          if (member* from = member_of(e.link, speaker_of(m))) hear(*from, m, now);
        } else {
          ++stale_refused;
        }
      },
      e.body);
}

// R2: only the process in place, on the link in use, is heard.
member* core::state::member_of(link_number link, incarnation_id incarnation) {
  const auto name = by_link.find(link);
  if (name != by_link.end()) {
    member& m = members.at(name->second);
    MOETIER_ASSERT(m.link == link);
    if (m.told.incarnation == incarnation) return &m;
  }
  ++stale_refused;
  return nullptr;
}

// --- joining ---

void core::state::hear(link_number link, const control::hello& m, time_ns now) {
  using why = control::refused::why;
  if (m.highest_epoch > durable.epoch && is_of_this_tier(m)) return meet_epoch(m.highest_epoch);
  if (const auto known = by_link.find(link); known != by_link.end()) {
    member& place = members.at(known->second);
    if (place.told.incarnation != m.incarnation || place.name != m.name) {
      ++stale_refused;  // one link is one process
      return;
    }
    // A repeat, because the answer was late or lost.
    send(place,
         control::welcome{place.id, m.incarnation, durable.epoch, place.first_slot, place.slots});
    return;
  }
  if (std::find(quarantined.begin(), quarantined.end(), m.incarnation) != quarantined.end()) {
    return refuse(link, m, why::load_failed, "the weights of this process failed their check");
  }
  if (const std::string text = mismatch_of(m); !text.empty()) {
    return refuse(link, m, why::join, text);
  }
  auto place = members.find(m.name);
  if (place == members.end()) {
    if (durable.generation.value != 0 || members.size() >= options.workers_expected ||
        (attempt && attempt->decided)) {
      return refuse(link, m, why::join, "the placement has no slots for this worker");
    }
    place = members.emplace(m.name, member{}).first;
    place->second.name = m.name;
  } else if (place->second.link) {
    if (place->second.told.incarnation != m.incarnation) {
      return refuse(link, m, why::join, "another process of this name is in service");
    }
    // The same process on a fresh link: the old one has ended there and its end is not seen here.
    emit(cut_worker_link{*place->second.link});
    by_link.erase(*place->second.link);
    place->second.link.reset();
  }
  adopt(place->second, link, m, now);
}

// Of the coordinator's own files, or of the plan that is decided; 0 = not known yet.
std::uint64_t core::state::checkpoint_digest() const {
  if (options.checkpoint_digest != 0) return options.checkpoint_digest;
  if (attempt && attempt->decided) return attempt->checkpoint_digest;
  return durable.checkpoint_digest;
}

// Epochs count within a tier: what another one's worker knows is no word about this coordinator.
bool core::state::is_of_this_tier(const control::hello& m) const {
  const std::uint64_t ours = checkpoint_digest();
  return m.model_fingerprint == options.checkpoint_fingerprint &&
         (ours == 0 || m.checkpoint_digest == 0 || m.checkpoint_digest == ours);
}

// Another member whose words are the tier's, or null: one with a link, or awaited after a stop of
// this process. Those that are gone may all be replaced by another build.
const member* core::state::peer_of(const control::hello& m) const {
  for (const auto& [name, other] : members) {
    if (name != m.name && (other.link || other.live())) return &other;
  }
  return nullptr;
}

// Everything in which this worker differs from the tier, or "".
std::string core::state::mismatch_of(const control::hello& m) const {
  std::string text;
  const auto differs = [&](const char* field, const auto& given, const auto& ours) {
    if (given == ours) return;
    text +=
        fmt::format("{}{} is {}; the tier's is {}", text.empty() ? "" : ", ", field, given, ours);
  };
  const auto hex = [](std::uint64_t v) { return fmt::format("{:016x}", v); };
  differs("protocol version", m.protocol, control::k_protocol_version);
  differs("model fingerprint", hex(m.model_fingerprint), hex(options.checkpoint_fingerprint));
  differs("heartbeat interval", m.heartbeat_interval_ns, options.heartbeat_interval);
  differs("heartbeat timeout", m.heartbeat_timeout_ns, options.heartbeat_timeout);
  const bool planned = durable.generation.value != 0;
  std::uint64_t digest = checkpoint_digest();
  if (const member* peer = peer_of(m)) {
    if (digest == 0) digest = peer->told.checkpoint_digest;
    differs("carrier", m.carrier, peer->told.carrier);
  }
  if (digest != 0) differs("checkpoint digest", hex(m.checkpoint_digest), hex(digest));
  if (const std::string unfit = unfit_for(m); !unfit.empty())
    text += fmt::format("{}{}", text.empty() ? "" : ", ", unfit);
  if (options.node != 0 && m.node == options.node) {
    text += fmt::format("{}its actor node has the coordinator's own identity",
                        text.empty() ? "" : ", ");
  }
  const auto place = members.find(m.name);
  if (planned && place != members.end() && m.slots != 0) {
    differs("slots", m.slots, place->second.slots);
  }
  for (const control::held_generation& held : m.held) {
    if (held.state != control::generation_state::serving) continue;
    if (!planned || held.generation != durable.generation || held.plan != durable.plan ||
        !resolved || m.resolution != resolved->resolution_id) {
      text += fmt::format("{}it serves generation {}, which is not this tier's",
                          text.empty() ? "" : ", ", held.generation.value);
    }
  }
  return text;
}

void core::state::refuse(link_number link, const control::hello& m, control::refused::why cause,
                         std::string text) {
  log(log_event::level::error, "worker_refused", fmt::format("{}: {}", m.name, text),
      {.worker = m.name});
  emit(send_to_worker{link, control::message(control::refused{
                                cause, durable.epoch, {}, m.incarnation, std::move(text)})});
}

// Takes a process into its place. What it holds decides how far it is already.
void core::state::adopt(member& place, link_number link, const control::hello& m, time_ns now) {
  const bool same_process = place.told.incarnation == m.incarnation;
  const bool was_serving = place.at == member_stage::serving && same_process;
  if (place.in_group() && !was_serving) epoch_wanted = true;
  auto seen = environment_of(m);
  place.seen = seen ? std::move(*seen) : nullptr;
  place.told = m;
  place.environment =
      std::make_shared<const std::string>(m.environment.begin(), m.environment.end());
  place.link = link;
  by_link[link] = place.name;
  place.at = member_stage::joined;
  place.leaving = false;
  place.suspected = false;
  place.probed_at = 0;
  place.committed = false;
  place.asked = {};
  place.admission = {};
  place.checksums.clear();
  place.shared_digest = 0;
  place.attached.clear();
  place.adapters.clear();
  // A link that breaks gives one that stands still no more time, and takes none from it.
  if (!was_serving || !place.stuck) place.heard_at = now;
  place.since = now;
  if (!same_process) {
    place.stuck = false;
    place.sequence = 0;
    place.tick = 0;
    place.rows_total = 0;
    place.calls_total = 0;
    place.counts.clear();
  }
  if (collecting && std::none_of(members.begin(), members.end(), [&](const auto& other) {
        return other.second.link && &other.second != &place;
      })) {
    collecting_since = now;  // the first after a silence: the others get their time too
  }
  plan_failed = false;
  log(log_event::level::info, "worker_joined", place.name, {.worker = place.name});
  send(place,
       control::welcome{place.id, m.incarnation, durable.epoch, place.first_slot, place.slots});
  learn_sources(place, now);
  learn_adapters(place, now);
  if (place.stuck && plan && !was_serving) return;  // it shows first that its engine turns again
  bring_in(place, was_serving, now);
}

// Sends a joined process on its way. `resumes`: it is in service and sources know it.
void core::state::bring_in(member& place, bool resumes, time_ns now) {
  if (!plan) {
    if (attempt && attempt->asked && !attempt->decided) ask(place, now);
    return;
  }
  const auto& held = place.told.held;
  const bool serves = std::any_of(held.begin(), held.end(), [](const auto& h) {
    return h.state == control::generation_state::serving;
  });
  const bool right = serves && place.told.held_checksums == reference_of(place) &&
                     place.told.held_shared_digest == durable.shared_digest;
  if (resumes && !right) epoch_wanted = true;
  if (!serves) return ask(place, now);
  if (!right) return quarantine(place, "its checksums differ from the committed plan's");
  place.committed = true;
  if (resumes || collecting) {
    place.at = member_stage::serving;
    send_missing_sources(place);
    send_missing_adapters(place);
  } else {
    place.at = member_stage::admitting;
    epoch_wanted = true;
  }
}

// --- leaving and dying ---

void core::state::on(const worker_link_lost& e, time_ns now) {
  const auto name = by_link.find(e.link);
  if (name == by_link.end()) {
    std::erase_if(parked, [&](const worker_message& w) { return w.link == e.link; });
    return;
  }
  member& gone = members.at(name->second);
  // It may have given up this coordinator, which was stopped, and serve on, or be dead: sources do
  // without it where they can, until one or the other is known. One that beat since then did not.
  const bool beat_since = gone.heard_at - woke_at > options.heartbeat_interval;
  const bool known = collecting || is_shown_live(gone);  // to sources
  if (gone.live() && known && now < patient_until && !beat_since) {
    log(log_event::level::info, "worker_awaited", gone.name);
    by_link.erase(name);
    gone.link.reset();
    gone.suspected = true;
    ++suspicions;
    return;
  }
  lose(gone, loss_cause::link_closed, "its link is closed");
}

// Its suspicion stays until the epoch without it is published: sources do without it meanwhile.
void core::state::lose(member& gone, loss_cause cause, const std::string& why) {
  log(gone.leaving ? log_event::level::info : log_event::level::warn, "worker_lost",
      fmt::format("{}: {}", gone.name, why), {.worker = gone.name});
  // One that leaves as its device failed says both.
  if (!gone.leaving || cause == loss_cause::device) {
    ++gone_by_cause[static_cast<std::size_t>(cause)];
  }
  note_loss(gone, cause);
  if (gone.link) by_link.erase(*gone.link);
  gone.link.reset();
  gone.suspected = gone.at == member_stage::serving;
  if (gone.in_group()) epoch_wanted = true;
  gone.at = member_stage::lost;
  gone.leaving = false;
  gone.committed = false;
  gone.attached.clear();
  gone.adapters.clear();
  plan_failed = false;
  if (durable.generation.value == 0 && !(attempt && attempt->decided)) {
    // Before the decision there is nothing to keep a place in.
    if (attempt) drop_attempt();
    const std::string name = gone.name;
    // What failed there failed on that machine: whoever comes instead is asked anew.
    std::erase_if(failures, [&](const prepare_failure& f) { return f.worker == name; });
    members.erase(name);
  }
}

void core::state::quarantine(member& bad, const std::string& text) {
  log(log_event::level::error, "worker_quarantined", fmt::format("{}: {}", bad.name, text),
      {.worker = bad.name});
  quarantined.push_back(bad.told.incarnation);
  if (quarantined.size() > k_quarantined_max) quarantined.pop_front();
  send(bad, control::refused{control::refused::why::load_failed, durable.epoch, durable.generation,
                             bad.told.incarnation, text});
  if (bad.link) emit(cut_worker_link{*bad.link});
  lose(bad, loss_cause::refused, text);
}

void core::state::hear(member& from, const control::leaving&, time_ns) {
  if (from.leaving) return;
  if (durable.generation.value == 0) {
    if (!(attempt && attempt->decided)) return lose(from, loss_cause::link_closed, "it leaves");
  }
  from.leaving = true;
  if (from.in_group()) epoch_wanted = true;
}

}  // namespace moetier::coordinator
