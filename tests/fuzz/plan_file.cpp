// Plan files, in our form and in TensorRT-LLM's, by themselves and against a small tier. The first
// byte is the number of workers that the other form is read for.

#include "eplb/plan_file.hpp"

#include "eplb/assignment_file.hpp"
#include "tests/eplb/small_placement.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace moetier::fuzz {
namespace {

void read_ours(std::string_view text) {
  if (const auto file = eplb::read_plan_file(text, "plan.json")) {
    const auto again = eplb::read_plan_file(eplb::plan_file_text(*file), "plan.json");
    check(again && *again == *file, "a plan file changes when it is written and read again");
  }
  eplb::slots_per_worker_of(text, "plan.json");
  const auto layers = eplb::layers_of(2);
  const auto spans = eplb::spans_of({2, 2});
  const auto placed = eplb::read_placed_plan(text, "plan.json", {3, layers, spans, 7});
  if (!placed) return;
  const auto bytes = placed->placed.canonical_bytes();
  const auto again = eplb::placement::from_canonical(bytes);
  check(again && *again == placed->placed, "a placement changes as bytes");
}

void read_theirs(std::string_view text, std::uint32_t workers) {
  if (!eplb::is_assignment_file(text)) return;
  const auto draft = eplb::read_assignment_file(text, "assignment.json", workers, 0);
  if (!draft) return;
  const auto written = eplb::write_assignment_file(*draft);
  check(written.has_value(), "an assignment that was read cannot be written");
  const auto again =
      eplb::read_assignment_file(written->text, "assignment.json", workers, draft->experts);
  check(again && *again == *draft, "an assignment changes when it is written and read again");
}

}  // namespace

void run(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return;
  const std::string_view text = text_of(bytes.subspan(1));
  read_ours(text);
  read_theirs(text, bytes[0]);
}

std::vector<input> seeds() {
  const eplb::plan_file moved{{3,
                               {2, 2},
                               {{layer_id{0}, {0, 1, 2, 0}, {40000, 65536, 65536, 25536}},
                                {layer_id{1}, {0, 1, 2, -1}, {}}}},
                              7,
                              {{layer_id{0}, 3, 0, 1}}};
  return {
      input_of(std::string("\2").append(eplb::plan_file_text(moved))),
      input_of("\2"
               R"({"format":1,"experts":3,"slots_per_worker":[2,2],)"
               R"("layers":[{"layer":0,"slots":[0,1,2,0]},{"layer":1,"slots":[0,1,2,1]}]})"),
      input_of("\2"
               R"({"num_slots":4,"layer_updates_per_iter":0,)"
               R"("initial_global_assignments":{"0":[0,1,2,0],"5":[2,1,0,2]}})"),
  };
}

}  // namespace moetier::fuzz
