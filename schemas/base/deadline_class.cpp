#include "schemas/base/deadline_class.hpp"

namespace moetier {

std::string_view deadline_class_name(deadline_class c) noexcept {
  switch (c) {
    case deadline_class::decode: return "decode";
    case deadline_class::prefill: return "prefill";
    case deadline_class::batch: return "batch";
  }
  return "unknown";
}

std::optional<deadline_class> deadline_class_of(std::string_view name) noexcept {
  for (const deadline_class c : k_all_deadline_classes) {
    if (deadline_class_name(c) == name) return c;
  }
  return std::nullopt;
}

}  // namespace moetier
