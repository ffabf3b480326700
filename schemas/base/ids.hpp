#pragma once
// The tier's identifiers: each is a type of its own around one integer, without implicit
// conversion, so that a slot can never be passed where an expert is meant. The words are those of
// the README glossary. Only the coordinator issues worker, session and source ids, epochs and
// generations. Thread: any.

#include <compare>
#include <cstdint>
#include <functional>

namespace moetier {

template <class Tag, class Integer>
struct strong_id {
  using integer = Integer;
  Integer value{};

  constexpr strong_id() = default;
  constexpr explicit strong_id(Integer v) : value(v) {}
  constexpr auto operator<=>(const strong_id&) const = default;
};

using layer_id = strong_id<struct layer_tag,
                           std::uint16_t>;  // index of a layer in the model, dense layers counted
using expert_id =
    strong_id<struct expert_tag, std::uint16_t>;  // logical expert of one layer, 0..E-1
using slot_id =
    strong_id<struct slot_tag, std::uint32_t>;  // global slot: worker's first slot + local slot
using worker_id = strong_id<struct worker_tag,
                            std::uint16_t>;  // place of a worker in the tier; survives its restarts
using source_id =
    strong_id<struct source_tag, std::uint16_t>;  // place of a source in the workers' attach tables
using session_id =
    strong_id<struct session_tag, std::uint32_t>;  // one attention service's lease; never 0
using epoch_number =
    strong_id<struct epoch_tag, std::uint64_t>;  // committed set of workers; fences commands
using generation_number =
    strong_id<struct generation_tag, std::uint64_t>;  // committed plan; 0 = none yet
using incarnation_id =
    strong_id<struct incarnation_tag, std::uint64_t>;  // 64 random bits per start of a process
using plan_hash = strong_id<struct plan_hash_tag, std::uint64_t>;  // first 64 bits of SHA-256 of
                                                                   // the plan's canonical bytes

// Revision of the shares inside one generation. A restarted coordinator has a higher epoch, so it
// reissues none.
struct shares_revision {
  epoch_number epoch;
  std::uint32_t counter = 0;
  constexpr auto operator<=>(const shares_revision&) const = default;
};

inline constexpr std::int32_t k_no_expert = -1;  // in id rows: this position asks for no expert
inline constexpr std::int32_t k_no_slot = -1;  // in slot rows: this position is not for this worker

}  // namespace moetier

template <class Tag, class Integer>
struct std::hash<moetier::strong_id<Tag, Integer>> {
  std::size_t operator()(const moetier::strong_id<Tag, Integer>& id) const noexcept {
    return std::hash<Integer>{}(id.value);
  }
};
