#include "eplb/planner/worker_groups.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "schemas/base/assert.hpp"

namespace moetier::eplb {
namespace {

constexpr int k_halvings = 30;
constexpr std::size_t k_pool_max = 8;          // experts of two groups that are parted anew
constexpr std::uint64_t k_work_max = 4 << 20;  // a start of 256 experts takes a tenth
constexpr double k_least_gain = 1e-7;

// Two groups as one: the first's members, then the second's.
template <class Member>
std::uint32_t member(const Member& first, const Member& second, std::size_t i) {
  return i < first.size() ? first[i] : second[i - first.size()];
}

}  // namespace

worker_groups::worker_groups(std::span<const std::uint64_t> loads, const slot_layout& layout)
    : loads_(loads),
      layout_(layout),
      falling_(loads.size()),
      sums_(std::size_t{1} << k_pool_max, 0) {
  MOETIER_ASSERT(loads.size() <= layout.slots());
  MOETIER_ASSERT(layout.slots() + 1 < loads.size() + layout.workers());
  std::iota(falling_.begin(), falling_.end(), 0U);
  std::stable_sort(falling_.begin(), falling_.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return loads[a] > loads[b]; });
}

// As many experts as leave the group wrappable: slots - workers + 1.
std::size_t worker_groups::room(const worker_group& g) const {
  std::size_t n = 1;
  for (const std::uint32_t w : g.workers) n += layout_.count(w) - 1;
  return n;
}

// Workers of every group at a limit if its leader's pieces leave room for mates; returns how many
// workers that takes beyond one per group.
std::uint32_t worker_groups::size_groups(double limit, double mate) {
  const double piece = std::max(limit - (layout_.count_least() - 1) * mate, limit * 1e-3);
  std::uint32_t extras = 0;
  for (std::size_t c = 0; c < sizes_.size(); ++c) {
    const double pieces = std::ceil((load(falling_[c]) - mate) / piece);
    sizes_[c] = static_cast<std::uint32_t>(std::max(1.0, pieces));
    extras += sizes_[c] - 1;
  }
  return extras;
}

// By the least limit that the workers suffice for; what is left goes to the fullest leaders.
void worker_groups::give_workers(double mate) {
  sizes_.assign(groups_.size(), 1);
  const auto extras = layout_.workers() - static_cast<std::uint32_t>(groups_.size());
  double low = 0;
  double high = load(falling_[0]) + layout_.count_least() * mate + 1;
  for (int i = 0; i < k_halvings; ++i) {
    const double middle = (low + high) / 2;
    (size_groups(middle, mate) <= extras ? high : low) = middle;
  }
  for (std::uint32_t used = size_groups(high, mate); used < extras; ++used) {
    std::size_t best = 0;
    for (std::size_t c = 1; c < sizes_.size(); ++c)
      if (load(falling_[c]) / sizes_[c] > load(falling_[best]) / sizes_[best]) best = c;
    ++sizes_[best];
  }
  std::uint32_t next = 0;
  for (std::size_t c = 0; c < groups_.size(); ++c)
    for (std::uint32_t i = 0; i < sizes_[c]; ++i) groups_[c].workers.push_back(next++);
}

// Leaders first; the others by falling load, each to the group with the least mean that has room.
void worker_groups::give_experts() {
  const auto put = [&](worker_group& g, std::uint32_t e) {
    g.experts.push_back(e);
    g.load += load(e);
  };
  for (std::size_t c = 0; c < groups_.size(); ++c) put(groups_[c], falling_[c]);
  for (std::size_t i = groups_.size(); i < falling_.size(); ++i) {
    worker_group* best = nullptr;
    for (worker_group& g : groups_) {
      if (best != nullptr && g.mean() >= best->mean()) continue;
      if (g.experts.size() < room(g)) best = &g;
    }
    MOETIER_ASSERT(best != nullptr);  // together they have room for exactly all
    put(*best, falling_[i]);
  }
}

void worker_groups::start(double mate) {
  groups_.assign(loads_.size() + layout_.workers() - layout_.slots(), {});
  work_ = 0;
  give_workers(mate);
  give_experts();
}

std::size_t worker_groups::fullest() const {
  std::size_t best = 0;
  for (std::size_t c = 1; c < groups_.size(); ++c)
    if (groups_[c].mean() > groups_[best].mean()) best = c;
  return best;
}

double worker_groups::limit() const { return groups_[fullest()].mean(); }

// An expert of the fullest group against a lighter one of another: the pair after which the larger
// of the two means is least.
bool worker_groups::swap_experts(std::size_t full) {
  worker_group& c = groups_[full];
  double least = c.mean() * (1 - k_least_gain);
  worker_group* with = nullptr;
  std::size_t from = 0;
  std::size_t to = 0;
  for (worker_group& d : groups_) {
    const double most = least * static_cast<double>(d.workers.size()) - d.load;
    if (&d == &c || most <= 0) continue;
    work_ += c.experts.size() * d.experts.size();
    for (std::size_t i = 0; i < c.experts.size(); ++i) {
      for (std::size_t j = 0; j < d.experts.size(); ++j) {
        const double gain = load(c.experts[i]) - load(d.experts[j]);
        if (gain <= 0 || gain >= most) continue;
        const double larger = std::max(c.mean_after(-gain), d.mean_after(gain));
        if (larger >= least) continue;
        least = larger;
        with = &d;
        from = i;
        to = j;
      }
    }
  }
  if (with == nullptr) return false;
  const double gain = load(c.experts[from]) - load(with->experts[to]);
  std::swap(c.experts[from], with->experts[to]);
  c.load -= gain;
  with->load += gain;
  return true;
}

// The workers and experts of the fullest group and of another one, parted in the best of all ways;
// small groups only.
bool worker_groups::part_anew(std::size_t full) {
  worker_group& c = groups_[full];
  double least = c.mean() * (1 - k_least_gain);
  worker_group* with = nullptr;
  std::size_t left_workers = 0;
  std::uint32_t left_experts = 0;  // a bit each
  for (worker_group& d : groups_) {
    const std::size_t experts = c.experts.size() + d.experts.size();
    const std::size_t workers = c.workers.size() + d.workers.size();
    const double both = c.load + d.load;
    if (&d == &c || experts > k_pool_max || both >= least * static_cast<double>(workers)) continue;
    const std::uint32_t subsets = std::uint32_t{1} << experts;
    work_ += subsets * workers;
    for (std::uint32_t s = 1; s < subsets; ++s) {
      const auto i = static_cast<std::size_t>(std::countr_zero(s));
      sums_[s] = sums_[s & (s - 1)] + load(member(c.experts, d.experts, i));
    }
    std::size_t left_room = 1;
    for (std::size_t b = 1; b < workers; ++b) {
      left_room += layout_.count(member(c.workers, d.workers, b - 1)) - 1;
      for (std::uint32_t s = 1; s < subsets; ++s) {
        if (static_cast<std::size_t>(std::popcount(s)) != left_room) continue;
        const double larger = std::max(sums_[s] / static_cast<double>(b),
                                       (both - sums_[s]) / static_cast<double>(workers - b));
        if (larger >= least) continue;
        least = larger;
        with = &d;
        left_workers = b;
        left_experts = s;
      }
    }
  }
  if (with == nullptr) return false;
  worker_group left;
  worker_group right;
  for (std::size_t i = 0; i < c.workers.size() + with->workers.size(); ++i)
    (i < left_workers ? left : right).workers.push_back(member(c.workers, with->workers, i));
  for (std::size_t i = 0; i < c.experts.size() + with->experts.size(); ++i) {
    worker_group& into = (left_experts >> i & 1) != 0 ? left : right;
    into.experts.push_back(member(c.experts, with->experts, i));
    into.load += load(into.experts.back());
  }
  c = std::move(left);
  *with = std::move(right);
  return true;
}

void worker_groups::improve(double enough) {
  while (work_ < k_work_max) {
    const std::size_t full = fullest();
    if (groups_[full].mean() <= enough) return;
    if (!swap_experts(full) && !part_anew(full)) return;
  }
}

}  // namespace moetier::eplb
