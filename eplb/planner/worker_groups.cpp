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

// Leaders and workers of every group at a limit; returns how many workers that takes beyond one per
// group. A leader's pieces leave room for mates; one whose last piece fills a worker but for less
// than a mate is critical.
std::uint32_t worker_groups::lead(double limit, double mate, bool paired) {
  const double mates = layout_.count_least() - 1;
  const double piece = std::max(limit - mates * mate, limit * 1e-3);
  std::uint32_t extras = 0;
  std::size_t made = 0;
  std::size_t waiting = seeds_.size();  // a critical leader without a second one
  for (const std::uint32_t e : falling_) {
    const double above = load(e) - mate;
    const double pieces = std::max(1.0, std::ceil(above / piece));
    const bool critical = paired && above - (pieces - 1) * piece > piece - mate;
    const auto workers = static_cast<std::uint32_t>(pieces) + (critical ? 1 : 0);
    if (critical && waiting < seeds_.size()) {
      seeds_[waiting].second = static_cast<std::int32_t>(e);
      seeds_[waiting].workers += workers - 2;
      extras += workers - 2;
      waiting = seeds_.size();
      continue;
    }
    if (made == seeds_.size()) break;
    seeds_[made] = {e, -1, workers};
    if (critical) waiting = made;
    extras += workers - 1;
    ++made;
  }
  return made == seeds_.size() ? extras : layout_.workers();
}

// By the least limit that the workers suffice for; what is left goes to the fullest leaders.
void worker_groups::give_workers(double mate, bool paired) {
  seeds_.assign(groups_.size(), {});
  const auto extras = layout_.workers() - static_cast<std::uint32_t>(groups_.size());
  double low = 0;
  double high = load(falling_[0]) + layout_.count_least() * mate + 1;
  for (int i = 0; i < k_halvings; ++i) {
    const double middle = (low + high) / 2;
    (lead(middle, mate, paired) <= extras ? high : low) = middle;
  }
  const auto per_worker = [&](const seed& s) {
    const double second = s.second < 0 ? 0 : load(static_cast<std::uint32_t>(s.second));
    return (load(s.first) + second) / s.workers;
  };
  for (std::uint32_t used = lead(high, mate, paired); used < extras; ++used) {
    ++std::max_element(seeds_.begin(), seeds_.end(), [&](const seed& a, const seed& b) {
        return per_worker(a) < per_worker(b);
      })->workers;
  }
  std::uint32_t next = 0;
  for (std::size_t c = 0; c < groups_.size(); ++c)
    for (std::uint32_t i = 0; i < seeds_[c].workers; ++i) groups_[c].workers.push_back(next++);
}

// Leaders first; the others by falling load, each to the group with the least mean that has room.
void worker_groups::give_experts() {
  std::vector<bool> placed(loads_.size());
  const auto put = [&](worker_group& g, std::uint32_t e) {
    g.experts.push_back(e);
    g.load += load(e);
    placed[e] = true;
  };
  for (std::size_t c = 0; c < groups_.size(); ++c) {
    put(groups_[c], seeds_[c].first);
    if (seeds_[c].second >= 0) put(groups_[c], static_cast<std::uint32_t>(seeds_[c].second));
  }
  for (const std::uint32_t e : falling_) {
    if (placed[e]) continue;
    worker_group* best = nullptr;
    for (worker_group& g : groups_) {
      if (best != nullptr && g.mean() >= best->mean()) continue;
      if (g.experts.size() < room(g)) best = &g;
    }
    MOETIER_ASSERT(best != nullptr);  // together they have room for exactly all
    put(*best, e);
  }
}

void worker_groups::start(double mate, bool paired) {
  groups_.assign(loads_.size() + layout_.workers() - layout_.slots(), {});
  work_ = 0;
  give_workers(mate, paired && layout_.count_least() > 1);
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
        const double larger = std::max(c.mean(-gain), d.mean(gain));
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

// A worker of another group joins the fullest one, with the lightest experts that its slots bring.
bool worker_groups::take_worker(std::size_t full) {
  worker_group& c = groups_[full];
  double least = c.mean() * (1 - k_least_gain);
  worker_group* with = nullptr;
  double moved = 0;
  for (worker_group& d : groups_) {
    if (&d == &c || d.workers.size() < 2) continue;
    work_ += d.experts.size();
    std::stable_sort(d.experts.begin(), d.experts.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return load(a) > load(b); });
    double brought = 0;
    for (std::uint32_t i = 1; i < layout_.count(d.workers.back()); ++i)
      brought += load(d.experts[d.experts.size() - i]);
    const double larger = std::max(c.mean(brought, 1), d.mean(-brought, -1));
    if (larger >= least) continue;
    least = larger;
    with = &d;
    moved = brought;
  }
  if (with == nullptr) return false;
  const auto first =
      with->experts.end() - static_cast<std::ptrdiff_t>(layout_.count(with->workers.back()) - 1);
  c.experts.insert(c.experts.end(), first, with->experts.end());
  with->experts.erase(first, with->experts.end());
  c.workers.push_back(with->workers.back());
  with->workers.pop_back();
  c.load += moved;
  with->load -= moved;
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
    if (!swap_experts(full) && !take_worker(full) && !part_anew(full)) return;
  }
}

}  // namespace moetier::eplb
