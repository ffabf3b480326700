// The attach table: which sources the engine takes rows from. A place holds one incarnation; a
// newer attach of the place replaces it. Repeats are answered again and change nothing. Who was
// detached does not come back: a coordinator that died while it ended a session has told some of
// the workers, and the next one learns the session from the others.

#include "workers/core/state.hpp"

namespace moetier::workers {

void core::state::obey(const control::attach_source& m) {
  if (!obeys(m.epoch, {})) return;
  const control::source_attachment& s = m.source;
  if (s.source.value >= control::k_sources_listed_max) {
    return answer_attached(s, false, "the attach table has no such place");
  }
  if (const auto held = sources.find(s.source); held != sources.end()) {
    if (held->second.source == s) {
      if (held->second.confirmed) answer_attached(s, true, {});
      return;  // else the engine's answer is on its way
    }
    if (held->second.source.session > s.session) {  // session ids rise: this one is over
      ++stale_refused;
      return;
    }
    forget_source(held->second);
  } else if (was_detached(s)) {
    ++stale_refused;
    return answer_attached(s, false, "this session was detached here", true);
  }
  sources[s.source] = {.source = s, .confirmed = false};
  emit(attach_source{s});
}

void core::state::on(const source_attach_done& e, time_ns) {
  const auto held = sources.find(e.source);
  if (held == sources.end() || held->second.source.incarnation != e.incarnation) return;
  const control::source_attachment s = held->second.source;
  if (e.accepted) {
    if (held->second.confirmed) return;
    held->second.confirmed = true;
  } else if (e.gone) {
    forget_source(held->second);
    sources.erase(held);
    log(log_event::level::warn, "source_unreached", e.text);
  } else {
    // The refusal may be of an earlier attach of the same source: afterwards neither side has it.
    sources.erase(held);
    emit(detach_source{s.source, s.incarnation});
    log(log_event::level::warn, "source_refused", e.text);
  }
  answer_attached(s, e.accepted, e.text, e.gone);
}

void core::state::answer_attached(const control::source_attachment& s, bool accepted,
                                  std::string text, bool gone) {
  say(control::source_attached{options.incarnation, s.source, s.incarnation, accepted,
                               std::move(text), gone});
}

void core::state::forget_source(const attached_source& held) {
  const control::source_attachment& s = held.source;
  if (held.confirmed) detached[s.source] = {s.session, s.incarnation};
  emit(detach_source{s.source, s.incarnation});
}

bool core::state::was_detached(const control::source_attachment& s) const {
  const auto last = detached.find(s.source);
  if (last == detached.end()) return false;
  return s.session < last->second.session ||
         (s.session == last->second.session && s.incarnation == last->second.incarnation);
}

void core::state::obey(const control::detach_source& m) {
  if (!obeys(m.epoch, {})) return;
  const auto held = sources.find(m.source);
  if (held == sources.end() || held->second.source.incarnation != m.incarnation) return;
  forget_source(held->second);
  sources.erase(held);
}

std::vector<control::source_attachment> core::state::confirmed_sources() const {
  std::vector<control::source_attachment> all;
  for (const auto& [place, s] : sources) {
    if (s.confirmed) all.push_back(s.source);
  }
  return all;
}

}  // namespace moetier::workers
