// Adapters: which ones the loader has read and the engine computes with. An id stands for one
// (name, path) within a coordinator's life; another one under a held id, which only a coordinator
// that forgot can send, replaces it. Repeats are answered again and change nothing.

#include <fmt/core.h>

#include "workers/core/state.hpp"

namespace moetier::workers {

void core::state::obey(const control::load_adapter& m) {
  if (!obeys(m.epoch, {})) return;
  const control::held_adapter& wanted = m.adapter;
  if (const auto held = adapters.find(wanted.adapter); held != adapters.end()) {
    if (held->second.adapter == wanted) {
      if (held->second.confirmed) answer_adapter(wanted.adapter, true, {});
      return;  // else the loader's answer is on its way
    }
    emit(drop_adapter{wanted.adapter});
    adapters.erase(held);
  }
  if (adapters.size() >= control::k_adapters_max) {
    return answer_adapter(wanted.adapter, false,
                          fmt::format("{} adapters are held already", adapters.size()));
  }
  adapters[wanted.adapter] = {.adapter = wanted, .confirmed = false};
  emit(load_adapter{wanted});
}

void core::state::on(const adapter_load_done& e, time_ns) {
  const auto held = adapters.find(e.adapter.adapter);
  // One that was dropped or replaced while it was read is nobody's any more.
  if (held == adapters.end() || held->second.adapter != e.adapter || held->second.confirmed) return;
  if (e.loaded) {
    held->second.confirmed = true;
  } else {
    adapters.erase(held);
    log(log_event::level::error, "adapter_refused", fmt::format("{}: {}", e.adapter.name, e.text));
  }
  answer_adapter(e.adapter.adapter, e.loaded, e.text);
}

void core::state::obey(const control::drop_adapter& m) {
  if (!obeys(m.epoch, {})) return;
  if (adapters.erase(m.adapter) > 0) emit(drop_adapter{m.adapter});
}

void core::state::answer_adapter(std::uint32_t adapter, bool loaded, std::string text) {
  say(control::adapter_state{options.incarnation, adapter, loaded, std::move(text)});
}

std::vector<control::held_adapter> core::state::confirmed_adapters() const {
  std::vector<control::held_adapter> all;
  for (const auto& [id, held] : adapters) {
    if (held.confirmed) all.push_back(held.adapter);
  }
  return all;
}

}  // namespace moetier::workers
