// The first plan: a placement over those who have joined, tried under an epoch of its own, decided
// when every byte of it is checked.

#include <algorithm>

#include <fmt/core.h>

#include "coordinator/core/state.hpp"
#include "eplb/plan_file.hpp"
#include "schemas/base/assert.hpp"
#include "schemas/base/checksum.hpp"
#include "schemas/control/codec.hpp"

namespace moetier::coordinator {
namespace {

// The hash names placement, weights and how they are held: what a generation is made of.
plan_hash hash_of(std::span<const std::uint8_t> placement,
                  std::initializer_list<std::uint64_t> made_of) {
  std::vector<std::byte> bytes(placement.size());
  std::copy(placement.begin(), placement.end(),
            reinterpret_cast<std::uint8_t*>(bytes.data()));  // a byte is a byte
  for (const std::uint64_t number : made_of) {
    for (unsigned i = 0; i < 8; ++i) bytes.push_back(static_cast<std::byte>(number >> (8 * i)));
  }
  return plan_hash(first_64_bits(sha256(bytes)));
}

// Slots per worker, in order of names: their own wish, the file's, or an even partition.
expected<std::vector<std::uint32_t>> slots_of(const core_options& options,
                                              const std::map<std::string, member>& members) {
  std::vector<std::uint32_t> wished;
  for (const auto& [name, m] : members) wished.push_back(m.told.slots);
  const auto count = static_cast<std::uint32_t>(wished.size());
  const std::uint32_t experts = options.model.experts;
  std::vector<std::uint32_t> given;
  if (!options.placement_file_text.empty()) {
    auto file = eplb::slots_per_worker_of(options.placement_file_text, options.placement_file_name);
    if (!file) return unexpected_error(std::move(file.error()));
    if (file->size() != wished.size()) {
      return fail(reason::placement_invalid,
                  fmt::format("{} lists {} workers; {} are expected", options.placement_file_name,
                              file->size(), wished.size()));
    }
    given = std::move(*file);
  } else if (std::all_of(wished.begin(), wished.end(), [](std::uint32_t n) { return n == 0; })) {
    given = eplb::even_partition(experts, count);
  } else {
    given.assign(count, (experts + count - 1) / count);
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (wished[i] != 0) given[i] = wished[i];
    }
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (wished[i] != 0 && wished[i] != given[i]) {
      return fail(reason::placement_invalid,
                  fmt::format("worker {} has {} slots; {} gives it {}", i, wished[i],
                              options.placement_file_name, given[i]));
    }
  }
  return given;
}

expected<eplb::placed_plan> place(const core_options& options,
                                  const std::map<std::string, member>& members) {
  auto slots = slots_of(options, members);
  if (!slots) return unexpected_error(std::move(slots.error()));
  std::vector<eplb::worker_span> spans;
  std::uint32_t next = 0;
  for (const auto& [name, m] : members) {
    const auto id = static_cast<std::uint16_t>(spans.size());
    const std::uint32_t count = (*slots)[id];
    spans.push_back({worker_id(id), name, next, count});
    next += count;
  }
  const auto& layers = options.model.moe_layers;
  if (options.placement_file_text.empty()) {
    auto placed = eplb::default_placement(options.model.experts, layers, spans);
    if (!placed) return unexpected_error(std::move(placed.error()));
    return eplb::placed_plan{std::move(*placed), {}};
  }
  return eplb::read_placed_plan(options.placement_file_text, options.placement_file_name,
                                {options.model.experts, layers, spans, options.model.fingerprint});
}

}  // namespace

// --- the first plan ---

void core::state::consider_first_plan() {
  if (durable.generation.value != 0 || attempt || plan_failed) return;
  const std::uint32_t expected_count = std::max(options.workers_expected, 1u);
  if (members.size() != expected_count) return;
  auto placed = place(options, members);
  if (!placed) return no_plan(placed.error());
  auto weighed = resolve_for(placed->placed);
  if (!weighed) return no_plan(weighed.error());
  resolved = std::make_shared<const resolution::resolution_report>(std::move(weighed->report));
  if (weighed->refusal) return no_plan(*weighed->refusal);
  log(log_event::level::info, "resolved", resolution::describe(*resolved));
  if (resolved->degraded())
    log(log_event::level::warn, "degraded", resolution::describe_rejections(*resolved));
  const auto canonical = placed->placed.canonical_bytes();
  const auto* first = reinterpret_cast<const std::uint8_t*>(canonical.data());
  plan_attempt a;
  a.bytes.assign(first, first + canonical.size());
  a.resolution = resolution::canonical_json(*resolved);
  a.shared_experts = shared_experts_held();
  if (a.bytes.size() + a.resolution.size() + 4096 > control::k_message_bytes_max) {
    return no_plan(make_error(reason::placement_invalid, "it is too large for one message"));
  }
  a.checkpoint_digest = members.begin()->second.told.checkpoint_digest;  // all have the same
  a.hash = hash_of(a.bytes, {options.model.fingerprint, a.checkpoint_digest,
                             resolved->resolution_id, a.shared_experts});
  a.placement = std::move(placed->placed);
  attempt = std::move(a);
  plan_problem.clear();
  for (const auto& span : attempt->placement.spans()) {
    member& m = members.at(span.name);
    m.id = span.worker;
    m.first_slot = span.first_slot;
    m.slots = span.slots;
  }
  epoch_wanted =
      true;  // each attempt has an epoch of its own: answers to earlier ones do not count
}

// Not tried again until the members change.
void core::state::no_plan(const error& why) {
  plan_failed = true;
  plan_problem = why.text;
  log(log_event::level::error, "plan_infeasible", plan_problem);
  if (options.ends_when_infeasible) stop(true, plan_problem, why.why);
}

void core::state::ask_all(time_ns now) {
  attempt->asked = true;
  for (auto& [name, m] : members) ask(m, now);
}

// R4: before the decision an abort is always safe. What is loaded may stay: the next attempt, when
// it is the same plan, finds it there; when it is another, its PREPARE replaces it.
void core::state::drop_attempt() {
  MOETIER_ASSERT(attempt && !attempt->decided);
  for (auto& [name, m] : members) {
    if (m.at != member_stage::preparing && m.at != member_stage::verified) continue;
    m.at = member_stage::joined;
    m.asked = {};
  }
  attempt.reset();
}

// Two workers hold other bytes of the same thing. Which of the two is wrong cannot be told: neither
// may serve. Both names are copies: the first quarantine drops the attempt, and with it where they
// stood.
void core::state::split(std::string one, std::string two, const std::string& what) {
  const std::string text = fmt::format("{}: the bytes of workers {} and {} differ", what, one, two);
  plan_problem = text;
  quarantine(members.at(one), text);
  quarantine(members.at(two), text);
}

void core::state::consider_decision() {
  if (!attempt || !attempt->asked || attempt->decided) return;
  for (const auto& [name, m] : members) {
    if (m.at != member_stage::verified) return;
  }
  const eplb::placement& p = attempt->placement;
  const member& any = members.at(p.spans().front().name);
  for (const auto& span : p.spans()) {
    member& m = members.at(span.name);
    if (m.shared_digest == any.shared_digest) continue;
    return split(any.name, m.name, "shared experts");
  }
  std::vector<std::uint64_t> all(p.layers().size() * std::size_t{p.dense_slots()});
  for (std::size_t s = 0; s < p.spans().size(); ++s) {
    const member& m = members.at(p.spans()[s].name);
    for (std::size_t layer = 0; layer < p.layers().size(); ++layer) {
      std::copy_n(
          m.checksums.begin() + static_cast<std::ptrdiff_t>(layer * m.slots), m.slots,
          all.begin() + static_cast<std::ptrdiff_t>(layer * p.dense_slots() + p.first_dense(s)));
    }
  }
  for (std::size_t layer = 0; layer < p.layers().size(); ++layer) {
    for (std::uint32_t e = 0; e < p.experts(); ++e) {
      const auto replicas = p.replicas(layer, e);
      for (const std::uint32_t d : replicas.subspan(1)) {
        if (all[layer * p.dense_slots() + d] == all[layer * p.dense_slots() + replicas[0]])
          continue;
        return split(p.spans()[p.span_of(replicas[0])].name, p.spans()[p.span_of(d)].name,
                     fmt::format("layer {} expert {}", p.layers()[layer].layer.value, e));
      }
    }
  }
  attempt->checksums = std::move(all);
  attempt->shared_digest = any.shared_digest;
  attempt->decided = true;
}

}  // namespace moetier::coordinator
