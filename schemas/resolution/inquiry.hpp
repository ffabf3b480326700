#pragma once
// What candidates of every kind have in common when they are asked for one worker: one question
// after the other, the first refusal stands, fields that the environment does not know are
// collected. A list of questions derives from it. Thread: owner.

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "schemas/resolution/environment.hpp"
#include "schemas/resolution/verdict.hpp"

namespace moetier::resolution {

class inquiry {
 protected:
  explicit inquiry(const environment& e) : e_(e) {}
  ~inquiry() = default;

  // Asks until one refuses.
  template <class Questions, std::size_t N>
  verdict ask_all(Questions& from, void (Questions::*const (&questions)[N])()) {
    for (const auto question : questions) {
      (from.*question)();
      if (refusal_) return *refusal_;
    }
    return verdict::unless_unknown(std::move(unknown_));
  }

  template <class... Args>
  void refuse(reject_reason why, fmt::format_string<Args...> form, Args&&... args) {
    if (!refusal_) refusal_ = verdict::no(why, fmt::format(form, std::forward<Args>(args)...));
  }
  bool refused() const noexcept { return refusal_.has_value(); }
  void unknown(std::string field) { unknown_.push_back(std::move(field)); }

  // The value of a field that is needed, or nullptr.
  template <class T>
  const T* needed(const char* name, const std::optional<T>& field) {
    if (field) return &*field;
    unknown(name);
    return nullptr;
  }

  void needs_cuda() {
    const device_kind* const has = needed("device", e_.device);
    if (has != nullptr && *has != device_kind::cuda)
      refuse(reject_reason::sm_unsupported, "it needs a CUDA device; this worker has none");
  }

  const environment& e_;

 private:
  std::optional<verdict> refusal_;
  std::vector<std::string> unknown_;
};

}  // namespace moetier::resolution
