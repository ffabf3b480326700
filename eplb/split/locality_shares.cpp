#include "eplb/split/locality_shares.hpp"

#include <algorithm>
#include <cmath>
#include <deque>

#include "eplb/split/share_rounding.hpp"
#include "schemas/base/assert.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::eplb {
namespace {

constexpr int k_far = 1 << 30;
constexpr double k_grain = 0x1p40;  // whole flow units over all loads

struct arc {
  std::uint32_t demand;
  std::uint32_t worker;
  std::uint32_t slot;
  int cost;  // 1: another cluster
  std::int64_t flow = 0;
};

struct demand {
  std::uint32_t cluster;
  std::uint32_t expert;
  std::int64_t left;
};

// Successive shortest paths: each augmentation crosses as few clusters more as possible, so the
// flow is of least cost at every time.
class least_cost_flow final {
 public:
  least_cost_flow(std::vector<demand> demands, std::vector<arc> arcs,
                  std::vector<std::int64_t> room)
      : demands_(std::move(demands)), arcs_(std::move(arcs)), room_(std::move(room)) {
    out_.resize(demands_.size());
    in_.resize(room_.size());
    for (std::uint32_t a = 0; a < arcs_.size(); ++a) {
      out_[arcs_[a].demand].push_back(a);
      in_[arcs_[a].worker].push_back(a);
    }
  }

  bool augment() {
    search();
    std::int64_t target = -1;
    for (std::uint32_t g = 0; g < room_.size(); ++g) {
      if (room_[g] <= 0 || worker_distance_[g] >= k_far) continue;
      if (target < 0 || worker_distance_[g] < worker_distance_[static_cast<std::size_t>(target)])
        target = g;
    }
    if (target < 0) return false;
    // Back along the path: how much fits, then send it.
    const auto g0 = static_cast<std::uint32_t>(target);
    std::int64_t amount = room_[g0];
    walk(g0, [&](std::uint32_t into, std::int64_t back) {
      if (back >= 0) {
        amount = std::min(amount, arcs_[static_cast<std::size_t>(back)].flow);
      } else {
        amount = std::min(amount, demands_[arcs_[into].demand].left);
      }
    });
    walk(g0, [&](std::uint32_t into, std::int64_t back) {
      arcs_[into].flow += amount;
      if (back >= 0) {
        arcs_[static_cast<std::size_t>(back)].flow -= amount;
      } else {
        demands_[arcs_[into].demand].left -= amount;
      }
    });
    room_[g0] -= amount;
    return true;
  }

  const std::vector<arc>& arcs() const { return arcs_; }
  const std::vector<demand>& demands() const { return demands_; }

 private:
  // Distances from everything with something left, over reversed flow too.
  void search() {
    demand_distance_.assign(demands_.size(), k_far);
    worker_distance_.assign(room_.size(), k_far);
    into_worker_.assign(room_.size(), 0);
    into_demand_.assign(demands_.size(), -1);
    std::deque<std::uint32_t> queue;
    std::vector<std::uint8_t> queued(demands_.size(), 0);
    for (std::uint32_t d = 0; d < demands_.size(); ++d) {
      if (demands_[d].left <= 0) continue;
      demand_distance_[d] = 0;
      queue.push_back(d);
      queued[d] = 1;
    }
    while (!queue.empty()) {
      const std::uint32_t d = queue.front();
      queue.pop_front();
      queued[d] = 0;
      for (const std::uint32_t a : out_[d]) {
        const std::uint32_t g = arcs_[a].worker;
        const int reached = demand_distance_[d] + arcs_[a].cost;
        if (reached >= worker_distance_[g]) continue;
        worker_distance_[g] = reached;
        into_worker_[g] = a;
        for (const std::uint32_t b : in_[g]) {
          const std::uint32_t other = arcs_[b].demand;
          if (arcs_[b].flow <= 0 || reached - arcs_[b].cost >= demand_distance_[other]) continue;
          demand_distance_[other] = reached - arcs_[b].cost;
          into_demand_[other] = b;
          if (queued[other] == 0) queue.push_back(other);
          queued[other] = 1;
        }
      }
    }
  }

  // visit(arc into a worker, arc whose flow is taken back or -1), from the last worker to the
  // start.
  template <class Visit>
  void walk(std::uint32_t g, Visit visit) {
    for (;;) {
      const std::uint32_t into = into_worker_[g];
      const std::int64_t back = into_demand_[arcs_[into].demand];
      visit(into, back);
      if (back < 0) return;
      g = arcs_[static_cast<std::size_t>(back)].worker;
    }
  }

  std::vector<demand> demands_;
  std::vector<arc> arcs_;
  std::vector<std::int64_t> room_;
  std::vector<std::vector<std::uint32_t>> out_, in_;
  std::vector<int> demand_distance_, worker_distance_;
  std::vector<std::uint32_t> into_worker_;
  std::vector<std::int64_t> into_demand_;
};

}  // namespace

locality_outcome locality_shares(const locality_problem& p) {
  const slot_layout& layout = *p.split.layout;
  MOETIER_ASSERT(!p.loads.empty() && p.worker_cluster.size() == layout.workers());
  const std::size_t experts = p.loads[0].size();
  std::vector<std::uint64_t> sum(experts, 0);
  double total = 0;
  for (const auto& cluster : p.loads) {
    MOETIER_ASSERT(cluster.size() == experts);
    for (std::size_t e = 0; e < experts; ++e) {
      sum[e] += cluster[e];
      total += static_cast<double>(cluster[e]);
    }
  }
  split_problem whole = p.split;
  whole.loads = sum;
  exact_split exact;
  const double limit = exact.solve(whole) * p.slack;
  const double scale = total > 0 ? k_grain / total : 1;

  std::vector<std::int64_t> room(layout.workers(), 0);
  for (std::uint32_t g = 0; g < layout.workers(); ++g) {
    const double speed = p.split.speeds.empty() ? 1 : p.split.speeds[g] / double{k_shares_unit};
    if (p.split.live.empty() || p.split.live[g] != 0)
      room[g] = static_cast<std::int64_t>(limit * speed * scale);
  }
  std::vector<std::vector<std::uint32_t>> hosts(experts);
  for (std::uint32_t s = 0; s < p.split.slots.size(); ++s) {
    const std::uint32_t g = layout.worker_of(s);
    if (p.split.slots[s] >= 0 && (p.split.live.empty() || p.split.live[g] != 0))
      hosts[static_cast<std::size_t>(p.split.slots[s])].push_back(s);
  }
  std::vector<demand> demands;
  std::vector<arc> arcs;
  for (std::uint32_t c = 0; c < p.loads.size(); ++c) {
    for (std::uint32_t e = 0; e < experts; ++e) {
      const auto amount = static_cast<std::int64_t>(static_cast<double>(p.loads[c][e]) * scale);
      if (hosts[e].size() == 1) room[layout.worker_of(hosts[e][0])] -= amount;
      if (hosts[e].size() < 2 || amount == 0) continue;
      for (const std::uint32_t s : hosts[e]) {
        const std::uint32_t g = layout.worker_of(s);
        arcs.push_back(
            {static_cast<std::uint32_t>(demands.size()), g, s, p.worker_cluster[g] == c ? 0 : 1});
      }
      demands.push_back({c, e, amount});
    }
  }
  least_cost_flow flow(std::move(demands), std::move(arcs), std::move(room));
  while (flow.augment()) {
  }

  locality_outcome out;
  std::vector<std::vector<std::uint64_t>> amounts(p.loads.size(),
                                                  std::vector<std::uint64_t>(layout.slots(), 0));
  for (const arc& a : flow.arcs())
    amounts[flow.demands()[a.demand].cluster][a.slot] = static_cast<std::uint64_t>(a.flow);
  std::vector<double> x(layout.workers(), 0);
  double crossing = 0;
  std::vector<std::uint64_t> own;
  std::vector<std::uint32_t> rounded;
  for (std::uint32_t c = 0; c < p.loads.size(); ++c) {
    out.units.emplace_back(layout.slots(), 0);
    for (std::uint32_t e = 0; e < experts; ++e) {
      if (hosts[e].empty()) continue;
      own.clear();
      for (const std::uint32_t s : hosts[e]) own.push_back(amounts[c][s]);
      rounded.resize(own.size());
      round_shares(own, rounded);
      for (std::size_t i = 0; i < own.size(); ++i) {
        const std::uint32_t s = hosts[e][i];
        const std::uint32_t g = layout.worker_of(s);
        out.units[c][s] = rounded[i];
        const double rows = static_cast<double>(p.loads[c][e]) * rounded[i] / k_shares_unit;
        x[g] += rows;
        if (p.worker_cluster[g] != c) crossing += rows;
      }
    }
  }
  out.limit = *std::max_element(x.begin(), x.end());
  out.cross_rows_ratio = total > 0 ? crossing / total : 0;
  return out;
}

}  // namespace moetier::eplb
