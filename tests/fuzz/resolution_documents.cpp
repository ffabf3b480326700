// The JSON documents that resolution reads: an environment and a report come from other machines,
// problem and deployment from files. The first byte says which.

#include "schemas/resolution/documents.hpp"

#include "schemas/resolution/report.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/schemas/resolution/small_values.hpp"
#include "tests/schemas/resolution/toy_environment.hpp"

namespace moetier::fuzz {
namespace {

using namespace resolution;

template <class Read>
void check_document(std::string_view text, Read read) {
  const auto value = read(text, "d.json");
  if (!value) return;
  const auto again = read(document_of(*value), "d.json");
  check(again && *again == *value, "a document changes when it is written and read again");
}

void check_report(std::string_view text) {
  const auto report = read_report(text, "r.json");
  if (!report) return;
  describe(*report);
  describe_rejections(*report);
  const std::string canonical = canonical_json(*report);
  const auto again = read_report(canonical, "r.json");
  check(again && *again == *report && canonical_json(*again) == canonical,
        "a report changes when it is written and read again");
}

}  // namespace

void run(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return;
  const std::string_view text = text_of(bytes.subspan(1));
  switch (bytes[0] % 4) {
    case 0: return check_document(text, read_environment);
    case 1: return check_document(text, read_problem);
    case 2: return check_document(text, read_deployment);
    default: return check_report(text);
  }
}

std::vector<input> seeds() {
  std::vector<input> all;
  const auto add = [&](std::uint8_t which, std::string_view text) {
    all.push_back({which});
    all.back().insert(all.back().end(), text.begin(), text.end());
  };
  add(0, document_of(cpu_machine()));
  add(0, document_of(gpu_machine()));
  add(1, document_of(small_problem()));
  add(2, document_of(small_deployment()));
  const auto report = toy::resolution_document();
  add(3, text_of(report));
  resolution_report refused = *read_report(text_of(report), "r");
  refused.winner.clear();
  refused.resolution_id = 0;
  refused.selected = selected_by::failed;
  refused.rejected = {{"moetier.cuda.ref.none", reject_reason::not_proven, "why", {"a", "b"}}};
  refused.possible = {{"moetier.cpu.avx2.none", {"cpu_avx2"}, {"a"}}};
  refused.env_fingerprints = {{"a", "0123456789abcdef"}};
  refused.notes = {"a note"};
  add(3, canonical_json(refused));
  return all;
}

}  // namespace moetier::fuzz
