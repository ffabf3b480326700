#pragma once
// Groups of workers, each with the experts that these workers alone serve: built around the hottest
// experts, then improved by exchanges between the fullest group and the others. A group holds
// exactly as many experts as leave it wrappable. Owner plans one layer. Thread: owner.

#include <cstdint>
#include <span>
#include <vector>

#include "eplb/slot_layout.hpp"

namespace moetier::eplb {

struct worker_group {
  std::vector<std::uint32_t> workers;
  std::vector<std::uint32_t> experts;
  double load = 0;

  double mean() const { return mean_after(0); }
  double mean_after(double more) const {
    return (load + more) / static_cast<double>(workers.size());
  }
};

class worker_groups final {
 public:
  // Requires: loads.size() <= layout.slots() < loads.size() + layout.workers() - 1; loads and
  // layout outlive this.
  worker_groups(std::span<const std::uint64_t> loads, const slot_layout& layout);

  // Starts anew: the hottest experts lead one group each, and each group gets the workers that its
  // leader needs if every other slot serves `mate`.
  void start(double mate);
  // Exchanges until the fullest group's mean is down to `enough`, or none lowers it, or the work of
  // one start is spent.
  void improve(double enough);

  double limit() const;  // mean of the fullest group
  std::span<const worker_group> groups() const noexcept { return groups_; }

 private:
  std::uint32_t size_groups(double limit, double mate);
  void give_workers(double mate);
  void give_experts();
  std::size_t fullest() const;
  bool swap_experts(std::size_t full);
  bool part_anew(std::size_t full);

  double load(std::uint32_t expert) const { return static_cast<double>(loads_[expert]); }
  std::size_t room(const worker_group& g) const;

  std::span<const std::uint64_t> loads_;
  const slot_layout& layout_;
  std::vector<std::uint32_t> falling_;  // experts by load
  std::vector<std::uint32_t> sizes_;    // workers by group, at the start
  std::vector<worker_group> groups_;
  std::vector<double> sums_;  // scratch of part_anew(): load of every subset
  std::uint64_t work_ = 0;    // pairs and subsets looked at since start()
};

}  // namespace moetier::eplb
