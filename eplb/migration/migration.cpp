#include "eplb/migration/migration.hpp"

#include <algorithm>
#include <tuple>

#include "schemas/base/assert.hpp"

namespace moetier::eplb {
namespace {

struct world {
  const migration_input& in;

  bool live(std::uint32_t g) const { return in.live.empty() || in.live[g] != 0; }
  bool draining(std::uint32_t g) const { return !in.draining.empty() && in.draining[g] != 0; }
  std::uint32_t node(std::uint32_t g) const { return in.node.empty() ? 0 : in.node[g]; }
  bool cached(std::uint32_t g) const {
    return node(g) < in.cached_node.size() && in.cached_node[node(g)] != 0;
  }
  // Live workers that hold an expert of a layer before the move.
  std::vector<std::uint32_t> holders(const slot_copy& c) const {
    std::vector<std::uint32_t> all;
    const auto& slots = in.from[c.layer_index];
    for (std::uint32_t s = 0; s < slots.size(); ++s) {
      const std::uint32_t g = in.layout->worker_of(s);
      if (slots[s] == static_cast<std::int32_t>(c.expert) && live(g)) all.push_back(g);
    }
    return all;
  }
};

copy_urgency urgency_of(const world& w, const std::vector<std::uint32_t>& holders) {
  if (holders.empty()) return copy_urgency::no_live_replica;
  const bool leaving =
      std::all_of(holders.begin(), holders.end(), [&](std::uint32_t g) { return w.draining(g); });
  return leaving ? copy_urgency::sole_on_draining : copy_urgency::balance;
}

struct waiting {
  planned_copy copy;
  std::vector<std::uint32_t> holders;
};

// The best source for a copy whose worker may not send this round.
struct choice {
  bool found = false;
  copy_path path = copy_path::disk;
  std::int32_t source = -1;
};

choice source_of(const world& w, const waiting& item, std::span<const std::uint8_t> sending) {
  const std::uint32_t to = w.in.layout->worker_of(item.copy.copy.slot);
  if (item.copy.copy.inside_worker)
    return {true, copy_path::same_worker, static_cast<std::int32_t>(to)};
  choice best;
  bool peer_busy = false;
  const auto consider = [&](std::uint32_t g, copy_path path) {
    if (sending[g] != 0) {
      peer_busy = true;
    } else if (!best.found || path < best.path) {
      best = {true, path, static_cast<std::int32_t>(g)};
    }
  };
  for (const std::uint32_t g : item.holders)
    consider(g, w.node(g) == w.node(to) ? copy_path::nvlink : copy_path::network);
  if (w.cached(to) && (!best.found || copy_path::host_cache < best.path))
    best = {true, copy_path::host_cache, -1};
  // The disk only for what no peer has: a busy peer is nearer than the disk a round later.
  if (!best.found && !peer_busy) best = {true, copy_path::disk, -1};
  return best;
}

}  // namespace

std::string_view copy_path_name(copy_path p) noexcept {
  constexpr std::string_view names[k_copy_paths] = {"same_worker", "nvlink", "host_cache",
                                                    "network", "disk"};
  return names[static_cast<std::size_t>(p)];
}

migration plan_migration(const migration_input& in) {
  MOETIER_ASSERT(in.layout != nullptr && in.from.size() == in.to.size());
  const world w{in};
  std::vector<waiting> queue;
  std::vector<double> gain_per_byte(in.to.size(), 0);
  for (std::uint32_t l = 0; l < in.to.size(); ++l) {
    std::uint32_t outside = 0;
    for (const slot_copy& c : copies_between(*in.layout, l, in.from[l], in.to[l])) {
      MOETIER_ASSERT(w.live(in.layout->worker_of(c.slot)));
      auto holders = w.holders(c);
      planned_copy planned{c, urgency_of(w, holders)};
      outside += c.inside_worker ? 0 : 1;
      queue.push_back({planned, std::move(holders)});
    }
    if (!in.gain.empty() && outside > 0) gain_per_byte[l] = in.gain[l] / outside;
  }
  std::stable_sort(queue.begin(), queue.end(), [&](const waiting& a, const waiting& b) {
    const auto key = [&](const waiting& x) {
      return std::tuple(x.copy.urgency, -gain_per_byte[x.copy.copy.layer_index]);
    };
    return key(a) < key(b);
  });

  migration out;
  std::vector<double> sends_until(in.layout->workers(), 0);
  std::vector<double> receives_until(in.layout->workers(), 0);
  std::vector<std::uint8_t> sending, receiving;
  while (!queue.empty()) {
    sending.assign(in.layout->workers(), 0);
    receiving.assign(in.layout->workers(), 0);
    std::vector<waiting> later;
    for (waiting& item : queue) {
      const std::uint32_t to = in.layout->worker_of(item.copy.copy.slot);
      const choice c = source_of(w, item, sending);
      const bool local = c.found && c.path == copy_path::same_worker;
      if (!c.found || (!local && receiving[to] != 0)) {
        later.push_back(std::move(item));
        continue;
      }
      item.copy.path = c.path;
      item.copy.source = c.source;
      item.copy.round = out.rounds;
      if (!local) {
        receiving[to] = 1;
        const auto from = static_cast<std::size_t>(c.source);
        double start = receives_until[to];
        if (c.source >= 0) {
          sending[from] = 1;
          start = std::max(start, sends_until[from]);
        }
        const double end = start + static_cast<double>(in.blob_bytes) /
                                       in.bytes_per_s[static_cast<std::size_t>(c.path)];
        receives_until[to] = end;
        if (c.source >= 0) sends_until[from] = end;
        out.predicted_s = std::max(out.predicted_s, end);
        out.bytes[static_cast<std::size_t>(c.path)] += in.blob_bytes;
      }
      out.copies.push_back(item.copy);
    }
    MOETIER_ASSERT(later.size() < queue.size());  // somebody is free in every round
    queue = std::move(later);
    ++out.rounds;
  }
  return out;
}

}  // namespace moetier::eplb
