#pragma once
// When a tier that runs without some of its workers is to end: those that may not be started again
// are given up, and the others go on while they serve everything. Pure; time and readiness come
// in. Thread: owner.

#include <cstddef>
#include <optional>

#include "schemas/base/time.hpp"

namespace moetier::up {

class given_up_workers final {
 public:
  // What nobody serves for so long will not be served any more.
  static constexpr duration_ns k_unready_limit = 10 * k_second;

  // One more, which ended with `code`.
  void add(int code) noexcept {
    code_ = code;
    ++count_;
  }
  bool any() const noexcept { return count_ > 0; }

  // The code to end with, the last one's: when all of `workers` are given up, or when at every look
  // of the last k_unready_limit the tier was not ready and nobody was on its way to make it so.
  // Nothing while it may go on.
  std::optional<int> verdict(time_ns now, std::size_t workers, bool has_hope) noexcept {
    if (!any()) return std::nullopt;
    if (count_ >= workers) return code_;
    if (has_hope) {
      unready_since_.reset();
      return std::nullopt;
    }
    if (!unready_since_) unready_since_ = now;
    if (now - *unready_since_ >= k_unready_limit) return code_;
    return std::nullopt;
  }

 private:
  std::size_t count_ = 0;
  int code_ = 0;
  std::optional<time_ns> unready_since_;
};

}  // namespace moetier::up
