#include "eplb/balance/starved_bound.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "eplb/balance/bound.hpp"

namespace moetier::eplb {
namespace {

constexpr int k_halvings = 40;
constexpr double k_rounding = 1e-9;  // of a piece: less than that over is not over

// Whether slots - experts extra workers are enough at limit t with s taken off every expert. An
// expert whose last piece fills a worker but for less than s counts half a worker more: alone it
// needs one, and only two such can share one.
class extras_needed final {
 public:
  extras_needed(std::span<const double> falling, std::uint32_t slots, std::uint32_t mates)
      : falling_(falling), extras_(static_cast<double>(slots - falling.size())), mates_(mates) {
    below_.assign(falling.size() + 1, 0);
    for (std::size_t i = falling.size(); i-- > 0;) below_[i] = below_[i + 1] + falling[i];
  }

  // s = the load of the expert at `rank`.
  bool enough(double t, std::size_t rank) {
    const double s = falling_[rank];
    const double piece = t - mates_ * s;
    if (piece <= 0) return true;  // says nothing
    const double needed = count(s, piece, rank);
    if (needed <= extras_) return true;
    const double lacking = static_cast<double>(falling_.size() - rank) * s - below_[rank];
    return needed - saved(lacking, piece, needed - extras_) <= extras_ + k_rounding;
  }

 private:
  struct saving {
    double workers, cost;
  };

  // Extra workers that the experts before `rank` need, and what it costs to need fewer: the upper
  // hull of each expert's steps, so that taking the best savings first is never too little.
  double count(double s, double piece, std::size_t rank) {
    const double half = 2 * s <= piece ? 0.5 : 0;  // what two such share holds for small s only
    double needed = 0;
    savings_.clear();
    for (std::size_t i = 0; i < rank; ++i) {
      const double above = falling_[i] - s;
      const double pieces = std::max(1.0, std::ceil(above / piece - k_rounding));
      const double over = above - (pieces - 1) * piece;  // of the last piece
      needed += pieces - 1;
      if (half > 0 && over > (piece - s) * (1 + k_rounding)) {
        needed += half;
        savings_.push_back({half, over - (piece - s)});
      } else if (pieces > 1 && half > 0 && over <= s) {
        savings_.push_back({half, over});
        savings_.push_back({half, s});
      } else if (pieces > 1) {
        savings_.push_back({1, over + (half > 0 ? s : 0)});
      }
    }
    return needed;
  }

  // Extra workers that `spare` load saves, or at least `wanted`. After the savings noted, every
  // further worker costs a whole piece.
  double saved(double spare, double piece, double wanted) {
    std::sort(savings_.begin(), savings_.end(), [](const saving& a, const saving& b) {
      return a.workers * b.cost > b.workers * a.cost;
    });
    double workers = 0;
    for (const saving& v : savings_) {
      if (workers >= wanted) return workers;
      const double part = spare >= v.cost ? 1 : spare / v.cost;
      workers += part * v.workers;
      spare -= part * v.cost;
    }
    return workers + spare / piece;
  }

  std::span<const double> falling_;
  double extras_;
  std::uint32_t mates_;
  std::vector<double> below_;  // sum from here on
  std::vector<saving> savings_;
};

}  // namespace

double starved_bound(std::span<const std::uint64_t> loads, const slot_layout& layout) {
  double bound = lower_bound(loads, layout.slots(), layout.workers());
  if (layout.slots() + 1 >= loads.size() + layout.workers()) return bound;
  std::vector<double> falling(loads.begin(), loads.end());
  std::sort(falling.begin(), falling.end(), std::greater<>());
  double most = 0;  // every expert on one worker
  for (const double w : falling) most += w;
  extras_needed extras(falling, layout.slots(), layout.count_least() - 1);
  for (std::size_t rank = falling.size(); rank-- > 0;) {
    if (extras.enough(bound, rank)) continue;
    double low = bound;
    double high = most;
    for (int i = 0; i < k_halvings; ++i) {
      const double middle = (low + high) / 2;
      (extras.enough(middle, rank) ? high : low) = middle;
    }
    bound = low;
  }
  return bound;
}

}  // namespace moetier::eplb
