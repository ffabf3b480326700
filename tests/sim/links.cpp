// Links: what a connection between two shells does to frames, at its worst. A shell hands its core
// nothing of a link after its end; that is the only promise made here.

#include <algorithm>

#include <fmt/core.h>

#include "tests/sim/world.hpp"

namespace moetier::sim {

namespace {
constexpr duration_ns k_late_max = 3 * k_second;
}

void world::connect(std::size_t w) {
  worker_host& host = workers_[w];
  if (!host.up || host.link || host.ending) return;
  const bool cut = clock_.now() < std::max(host.cut_up_until, host.cut_down_until);
  if (!head_.up || cut) return reconnect_later(w);
  link l;
  l.number = ++last_link_;
  l.worker = w;
  l.worker_life = host.life;
  l.coordinator_life = head_.life;
  links_.emplace(l.number, std::move(l));
  host.link = last_link_;
  step_worker(w, workers::link_up{});
}

time_ns world::arrival(time_ns& last) {
  const time_ns when = clock_.now() + dice_.between(20 * k_microsecond, 2 * k_millisecond);
  if (dice_.chance(rates_.reorder)) return when + dice_.below(50 * k_millisecond);
  last = std::max(last + 1, when);
  return last;
}

std::vector<control::frame> world::damaged(std::vector<control::frame> frames) {
  if (dice_.chance(rates_.damage)) {
    control::frame& f = frames[dice_.below(frames.size())];
    f[dice_.below(f.size())] ^= static_cast<std::uint8_t>(1u << dice_.below(8));
  }
  if (frames.size() > 1 && dice_.chance(rates_.lose)) {
    frames.erase(frames.begin() + static_cast<std::ptrdiff_t>(dice_.below(frames.size())));
  }
  return frames;
}

void world::to_coordinator(link& l, const control::message& m) {
  if (!l.open_here || clock_.now() < workers_[l.worker].cut_up_until) return;
  if (dice_.chance(rates_.lose)) return;
  const auto frames = std::make_shared<std::vector<control::frame>>(damaged(control::encode(m)));
  const auto deliver = [this, number = l.number, life = l.coordinator_life, frames] {
    in_coordinator(life, [this, number, frames] {
      const auto at = links_.find(number);
      if (at == links_.end() || !at->second.open_there) return;
      for (const control::frame& f : *frames) {
        auto got = at->second.there.accept(f);
        if (!got || !got->has_value()) continue;
        if (const auto* hello = std::get_if<control::hello>(&**got)) {
          head_.seen[hello->incarnation] = number;
          head_.heard[hello->incarnation] = head_.joined[hello->incarnation] = clock_.now();
          head_.committing.erase(hello->incarnation);
        }
        const auto* word = std::get_if<control::source_attached>(&**got);
        if (word != nullptr && word->gone) head_.gone_sources.insert(word->incarnation);
        const auto* beat = std::get_if<control::heartbeat>(&**got);
        if (beat != nullptr && beat->oldest_batch_ns == 0) {
          head_.heard[beat->incarnation] = clock_.now();
        }
        trace([&] {
          return fmt::format("link {} to coordinator: kind {}", number, (*got)->index() + 1);
        });
        step_coordinator(coordinator::worker_message{number, std::move(**got)});
        return;
      }
    });
  };
  clock_.at(arrival(l.last_there), deliver);
  if (dice_.chance(rates_.repeat)) clock_.after(dice_.below(300 * k_millisecond), deliver);
}

void world::to_worker(link& l, const control::message& m) {
  if (!l.open_there || clock_.now() < workers_[l.worker].cut_down_until) return;
  if (dice_.chance(rates_.lose)) return;
  const auto frames = std::make_shared<std::vector<control::frame>>(damaged(control::encode(m)));
  const auto deliver = [this, number = l.number, w = l.worker, life = l.worker_life, frames] {
    in_worker(w, life, [this, w, number, frames] {
      const auto at = links_.find(number);
      if (at == links_.end() || !at->second.open_here) return;
      for (const control::frame& f : *frames) {
        auto got = at->second.here.accept(f);
        if (got && got->has_value()) {
          trace([&] {
            return fmt::format("link {} to {}: kind {}", number, workers_[w].name,
                               (*got)->index() + 1);
          });
          return step_worker(w, workers::coordinator_message{std::move(**got)});
        }
      }
    });
  };
  clock_.at(arrival(l.last_here), deliver);
  if (dice_.chance(rates_.repeat)) clock_.after(dice_.below(300 * k_millisecond), deliver);
  if (dice_.chance(rates_.late_copy)) {
    // As from a coordinator that woke up too late: only the epoch tells that it is old, and only
    // the incarnation whom it was meant for.
    clock_.after(dice_.below(k_late_max), [this, w = l.worker, m] {
      in_worker(w, workers_[w].life,
                [this, w, m] { step_worker(w, workers::coordinator_message{m}); });
    });
  }
}

// The worker's end is closed, by its shell or with its process.
void world::close_from_worker(coordinator::link_number number, bool seen) {
  const auto at = links_.find(number);
  if (at == links_.end() || !at->second.open_here) return;
  at->second.open_here = false;
  if (!seen || clock_.now() < workers_[at->second.worker].cut_up_until) return;
  clock_.at(arrival(at->second.last_there), [this, number, life = at->second.coordinator_life] {
    in_coordinator(life, [this, number] {
      const auto l = links_.find(number);
      if (l == links_.end() || !l->second.open_there) return;
      l->second.open_there = false;
      std::erase_if(head_.seen, [&](const auto& s) { return s.second == number; });
      step_coordinator(coordinator::worker_link_lost{number});
    });
  });
}

// The network breaks it: both shells learn of it, the coordinator's perhaps never.
void world::break_link(std::size_t w) {
  if (!workers_[w].up || !workers_[w].link) return;
  workers_[w].touched = true;
  const coordinator::link_number number = *std::exchange(workers_[w].link, std::nullopt);
  close_from_worker(number, !dice_.chance(rates_.half_open));
  const std::uint64_t life = workers_[w].life;
  clock_.after(dice_.below(k_millisecond), [this, w, life] {
    in_worker(w, life, [this, w] { step_worker(w, workers::link_lost{}); });
  });
  reconnect_later(w);
}

// The coordinator's end is closed, by its shell or with its process.
void world::close_from_coordinator(coordinator::link_number number) {
  const auto at = links_.find(number);
  if (at == links_.end() || !at->second.open_there) return;
  link& l = at->second;
  l.open_there = false;
  std::erase_if(head_.seen, [&](const auto& s) { return s.second == number; });
  if (clock_.now() < workers_[l.worker].cut_down_until) return;
  clock_.at(arrival(l.last_here), [this, number, w = l.worker, life = l.worker_life] {
    in_worker(w, life, [this, number, w] {
      const auto here = links_.find(number);
      if (here == links_.end() || !here->second.open_here) return;
      here->second.open_here = false;
      if (workers_[w].link != number) return;
      workers_[w].link.reset();
      step_worker(w, workers::link_lost{});
      reconnect_later(w);
    });
  });
}

}  // namespace moetier::sim
