#include "transport/in_process/fault_hooks.hpp"

#include <algorithm>

namespace moetier::transport {

void fault_hooks::set_rule(rule decide) {
  const std::lock_guard lock(mutex_);
  decide_ = std::move(decide);
}

void fault_hooks::stall(member who) {
  change([&] { stalled_.insert(who); });
}

void fault_hooks::resume(member who) {
  change([&] { stalled_.erase(who); });
}

void fault_hooks::kill(member who) {
  change([&] { killed_.insert(who); });
}

void fault_hooks::break_between(member a, member b) {
  change([&] { ++breaks_[std::minmax(a, b)]; });
}

void fault_hooks::flush() {
  change([&] { ++flushes_; });
}

void fault_hooks::set_on_change(std::function<void()> on_change) {
  const std::lock_guard lock(mutex_);
  on_change_ = std::move(on_change);
}

frame_fault fault_hooks::decide(const wire_header& header) {
  const std::lock_guard lock(mutex_);
  return decide_ ? decide_(header) : frame_fault{};
}

bool fault_hooks::is_stalled(member who) const {
  const std::lock_guard lock(mutex_);
  return stalled_.contains(who);
}

bool fault_hooks::is_killed(member who) const {
  const std::lock_guard lock(mutex_);
  return killed_.contains(who);
}

std::uint64_t fault_hooks::breaks_between(member a, member b) const {
  const std::lock_guard lock(mutex_);
  const auto found = breaks_.find(std::minmax(a, b));
  return found == breaks_.end() ? 0 : found->second;
}

std::uint64_t fault_hooks::flushes() const {
  const std::lock_guard lock(mutex_);
  return flushes_;
}

void fault_hooks::change(const std::function<void()>& edit) {
  std::function<void()> notify;
  {
    const std::lock_guard lock(mutex_);
    edit();
    notify = on_change_;
  }
  if (notify) notify();  // outside the lock: it wakes members, which ask back
}

}  // namespace moetier::transport
