// The attach table: which sources the engine takes rows from. A place holds one incarnation; a
// newer attach of the place replaces it. Repeats are answered again and change nothing.

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
    emit(detach_source{s.source, held->second.source.incarnation});
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
  } else {
    // The refusal may be of an earlier attach of the same source: afterwards neither side has it.
    sources.erase(held);
    emit(detach_source{s.source, s.incarnation});
    log(log_event::level::warn, "source_refused", e.text);
  }
  answer_attached(s, e.accepted, e.text);
}

void core::state::answer_attached(const control::source_attachment& s, bool accepted,
                                  std::string text) {
  say(control::source_attached{options.incarnation, s.source, s.incarnation, accepted,
                               std::move(text)});
}

void core::state::obey(const control::detach_source& m) {
  if (!obeys(m.epoch, {})) return;
  const auto held = sources.find(m.source);
  if (held == sources.end() || held->second.source.incarnation != m.incarnation) return;
  sources.erase(held);
  emit(detach_source{m.source, m.incarnation});
}

std::vector<control::source_attachment> core::state::confirmed_sources() const {
  std::vector<control::source_attachment> all;
  for (const auto& [place, s] : sources) {
    if (s.confirmed) all.push_back(s.source);
  }
  return all;
}

}  // namespace moetier::workers
