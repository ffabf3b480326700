// Adapters of routed experts: which ones the tier has, who holds them, and which ids sources may
// name. An id is listed to sources only while every live worker holds it, so a row never reaches a
// worker that would refuse it; it is taken off the list before a worker is told to drop it. Ids are
// not reused within a coordinator's life; after a restart the workers' hellos bring them back.

#include <algorithm>

#include <fmt/core.h>

#include "coordinator/core/state.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::coordinator {
namespace {

constexpr duration_ns k_retry_interval = 10 * k_second;  // of a worker that refused or is slow

bool printable(const std::string& s) {
  return std::all_of(s.begin(), s.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

expected<void> check_words(const load_adapter& e) {
  if (e.name.empty() || e.name.size() > k_worker_name_bytes_max || !printable(e.name)) {
    return fail(reason::invalid_argument, "the adapter's name", "not a name",
                "1 to 64 printable ASCII characters");
  }
  if (!e.path.starts_with('/') || e.path.size() > control::k_adapter_path_bytes_max ||
      !printable(e.path)) {
    return fail(reason::invalid_argument, "the adapter's path", "not an absolute path",
                "/ and at most 1023 more printable ASCII characters");
  }
  return {};
}

}  // namespace

adapter* core::state::find_adapter(const std::string& name) {
  const auto found = std::find_if(adapters.begin(), adapters.end(), [&](const auto& a) {
    return a.second.held.name == name && !a.second.dropping();
  });
  return found == adapters.end() ? nullptr : &found->second;
}

bool core::state::runs_adapters() const noexcept { return resolved && resolved->where.lora_routed; }

// --- load ---

void core::state::on(const load_adapter& e, time_ns now) {
  if (auto fine = check_words(e); !fine) return answer_plain(e.token, std::move(fine));
  if (!published) {
    return answer_plain(e.token, fail(reason::not_ready, "no plan is in service"));
  }
  if (!runs_adapters()) {
    return answer_plain(
        e.token, fail(reason::not_enabled, "lora (moe.lora is off where the plan was made)"));
  }
  if (adapter* known = find_adapter(e.name)) {
    if (known->held.path != e.path) {
      return answer_plain(e.token, fail(reason::invalid_argument, "the adapter's name", e.name,
                                        "one that is not in use for another path"));
    }
    if (known->loading.empty()) {  // another try at a worker that refused it
      known->load_until = now + options.adapter_limit;
      known->resend_at = now;
    }
    known->loading.push_back(e.token);  // answered by settle(), at once if sources may name it
    return;
  }
  if (adapters.size() >= control::k_adapters_max) {
    return answer_plain(e.token, fail(reason::limit_exceeded, "the number of adapters",
                                      adapters.size() + 1, control::k_adapters_max));
  }
  if (next_adapter >= control::k_adapter_ids_max) {
    return answer_plain(e.token, fail(reason::limit_exceeded, "the adapter's id", next_adapter,
                                      control::k_adapter_ids_max - 1));
  }
  const bool any =
      std::any_of(members.begin(), members.end(), [](const auto& m) { return m.second.live(); });
  if (!any) return answer_plain(e.token, fail(reason::not_ready, "no worker is in service"));
  adapter a;
  a.held = {next_adapter++, e.name, e.path};
  a.loading.push_back(e.token);
  a.load_until = now + options.adapter_limit;
  a.resend_at = now + options.heartbeat_timeout;
  for (auto& [name, m] : members) {
    if (m.takes_sources()) send(m, control::load_adapter{durable.epoch, a.held});
  }
  adapters.emplace(a.held.adapter, std::move(a));
}

void core::state::hear(member& from, const control::adapter_state& m, time_ns now) {
  const auto found = adapters.find(m.adapter);
  if (found == adapters.end() || found->second.dropping()) {  // given up meanwhile
    ++stale_refused;
    if (m.loaded) send(from, control::drop_adapter{durable.epoch, m.adapter});
    return;
  }
  from.adapters[m.adapter] = m.loaded;
  if (!m.loaded) {
    adapter& a = found->second;
    log(log_event::level::error, "adapter_refused",
        fmt::format("adapter {} worker {}: {}", a.held.name, from.name, m.text),
        {.worker = from.name});
    a.problem = fmt::format("worker {}: {}", from.name, m.text);
    // One refusal ends a load; a complete one stays, off the list until that worker has it.
    const error why = make_error(reason::adapter_refused, a.held.name, a.problem);
    if (!a.complete) return give_up(a, why);
    answer_loads(a, why);
  }
  try_serve(from, now);
}

bool core::state::is_held_by_all(std::uint32_t id) const {
  return std::all_of(members.begin(), members.end(),
                     [&](const auto& m) { return !m.second.live() || m.second.holds_adapter(id); });
}

std::vector<std::uint32_t> core::state::listed_adapters() const {
  std::vector<std::uint32_t> ids;
  for (const auto& [id, a] : adapters) {
    if (!a.dropping() && is_held_by_all(id)) ids.push_back(id);
  }
  return ids;
}

// --- drop ---

void core::state::on(const drop_adapter& e, time_ns) {
  adapter* a = find_adapter(e.name);
  if (a == nullptr) {
    std::string names;
    for (const auto& [id, known] : adapters) {
      if (!known.dropping())
        names += fmt::format("{}{}", names.empty() ? "" : ", ", known.held.name);
    }
    return answer_plain(e.token, fail(reason::invalid_argument, "the adapter", e.name,
                                      names.empty() ? "none is loaded" : names));
  }
  a->drop_token = e.token;
  answer_loads(*a, make_error(reason::adapter_refused, a->held.name, "it was dropped meanwhile"));
}

void core::state::answer_loads(adapter& a, const error& why) {
  for (const request_token token : std::exchange(a.loading, {})) {
    answer_plain(token, unexpected_error(why));
  }
}

void core::state::give_up(adapter& a, const error& why) {
  answer_loads(a, why);
  a.given_up = true;  // taken off the list, then away, by settle()
}

// Answers loads that sources can use and removes what they no longer see.
void core::state::settle_adapters() {
  const auto listed = [&](std::uint32_t id) {
    return published &&
           std::binary_search(published->adapters.begin(), published->adapters.end(), id);
  };
  for (auto at = adapters.begin(); at != adapters.end();) {
    auto& [id, a] = *at;
    if (a.dropping() && !listed(id)) {
      for (auto& [name, m] : members) {
        m.adapters.erase(id);
        send(m, control::drop_adapter{durable.epoch, id});
      }
      log(log_event::level::info, "adapter_dropped", a.held.name);
      if (a.drop_token) answer_plain(*a.drop_token, {});
      at = adapters.erase(at);
      continue;
    }
    if (!a.dropping() && listed(id)) {
      if (!std::exchange(a.complete, true)) {
        a.problem.clear();
        log(log_event::level::info, "adapter_loaded",
            fmt::format("{} as {} from {}", a.held.name, id, a.held.path));
      }
      for (const request_token token : std::exchange(a.loading, {})) answer_plain(token, {});
    }
    ++at;
  }
}

void core::state::resend_adapters(time_ns now) {
  for (auto& [id, a] : adapters) {
    if (a.dropping()) continue;
    if (!a.loading.empty() && now > a.load_until) {
      const error late =
          make_error(reason::deadline_passed, fmt::format("loading adapter {}", a.held.name),
                     options.adapter_limit / k_millisecond);
      if (!a.complete) {
        give_up(a, late);
        continue;
      }
      answer_loads(a, late);
    }
    if (now < a.resend_at) continue;
    a.resend_at = now + k_retry_interval;
    for (const auto& [name, m] : members) {
      if (m.takes_sources() && !m.holds_adapter(id)) {
        send(m, control::load_adapter{durable.epoch, a.held});
      }
    }
  }
}

// --- workers that come ---

// Whether it has every adapter, or has said that it cannot have it.
bool core::state::has_settled_adapters(const member& m) const {
  return std::all_of(adapters.begin(), adapters.end(), [&](const auto& a) {
    return a.second.dropping() || m.adapters.contains(a.first);
  });
}

void core::state::send_missing_adapters(const member& to) {
  for (const auto& [id, a] : adapters) {
    if (!a.dropping() && !to.holds_adapter(id)) {
      send(to, control::load_adapter{durable.epoch, a.held});
    }
  }
}

// What a worker holds, against what there should be. After a start this is where adapters come
// from.
void core::state::learn_adapters(member& from, time_ns now) {
  for (const control::held_adapter& told : from.told.adapters) {
    auto known = adapters.find(told.adapter);
    if (known == adapters.end() && collecting && runs_adapters() &&
        adapters.size() < control::k_adapters_max && find_adapter(told.name) == nullptr) {
      adapter a;
      a.held = told;
      a.complete = true;
      a.resend_at = now + options.heartbeat_timeout;
      known = adapters.emplace(told.adapter, std::move(a)).first;
      for (auto& [name, m] : members) {
        if (&m != &from && m.takes_sources()) send(m, control::load_adapter{durable.epoch, told});
      }
    }
    // Ids learned from anybody are taken, also those that are refused here.
    next_adapter = std::max(next_adapter, told.adapter + 1);
    if (known != adapters.end() && known->second.held == told && !known->second.dropping()) {
      from.adapters[told.adapter] = true;
    } else {
      send(from, control::drop_adapter{durable.epoch, told.adapter});
    }
  }
}

void core::state::answer_adapter_requests(const error& why) {
  for (auto& [id, a] : adapters) {
    answer_loads(a, why);
    if (a.drop_token)
      answer_plain(*std::exchange(a.drop_token, std::nullopt), unexpected_error(why));
  }
}

}  // namespace moetier::coordinator
