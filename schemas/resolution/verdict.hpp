#pragma once
// What a candidate answers when it is asked for one worker: it can run, it cannot and says why, or
// it abstains because the environment does not know something that it needs. Unknown is never taken
// for no. Thread: any (a value).

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "schemas/resolution/reject_reason.hpp"

namespace moetier::resolution {

struct verdict {
  enum class answer : std::uint8_t { eligible, rejected, abstains };

  answer what = answer::eligible;
  reject_reason why = reject_reason::not_proven;  // rejected
  std::string detail;                             // rejected: one clause
  std::vector<std::string> unknown;               // abstains: names of environment fields

  static verdict yes() { return {}; }
  static verdict no(reject_reason why, std::string detail) {
    return {answer::rejected, why, std::move(detail), {}};
  }
  // yes() where nothing is unknown.
  static verdict unless_unknown(std::vector<std::string> fields) {
    if (fields.empty()) return yes();
    return {answer::abstains, reject_reason::not_proven, {}, std::move(fields)};
  }

  bool eligible() const noexcept { return what == answer::eligible; }
  bool rejected() const noexcept { return what == answer::rejected; }
  bool abstains() const noexcept { return what == answer::abstains; }

  bool operator==(const verdict&) const = default;
};

}  // namespace moetier::resolution
