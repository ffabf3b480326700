#include "schemas/resolution/report.hpp"

#include <gtest/gtest.h>

#include "tests/schemas/resolution/small_values.hpp"

namespace moetier::resolution {
namespace {

resolution_report full_report() {
  resolution_report r;
  r.winner = "moetier.cpu.ref.none";
  r.requested = "AUTO";
  r.selected = selected_by::heuristic;
  r.resolution_id = 0xfedcba9876543210ULL;
  r.epoch = 7;
  r.env_fingerprints = {{"worker@1", "00ff"}, {"worker@2", "00ff"}};
  r.eligible = {"moetier.cpu.ref.none"};
  r.possible = {{"moetier.cuda.ref.none", {"device"}, {"worker@1"}}};
  r.rejected = {{"moetier.cpu.avx2.none",
                 reject_reason::sm_unsupported,
                 "the processor has no FMA",
                 {"worker@2"}}};
  r.degraded_from = {"moetier.cpu.avx2.none"};
  r.what = small_problem();
  r.where = small_deployment();
  r.routing = {"generic", "limits", "experts", 2048};
  r.communication = {"ucx.two_sided",
                     "ucx.all_gather",
                     {{"in_process", reject_reason::topology_unsupported, "far", {"worker@1"}}},
                     {}};
  r.combine_dtype = dtype::bf16;
  r.pads_to = "2880 as 2944";
  r.notes = {"a note"};
  return r;
}

TEST(reports, read_what_was_written) {
  const resolution_report r = full_report();
  const std::string text = canonical_json(r);
  EXPECT_EQ(text.find('\n'), text.npos);
  const auto read = read_report(text, "r");
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(*read, r);
  EXPECT_EQ(canonical_json(*read), text);
  EXPECT_EQ(*read_report(readable_json(r), "r"), r);
  EXPECT_EQ(text.rfind(R"({"schema":"moetier.resolution/1","winner":"moetier.cpu.ref.none",)", 0),
            0u);
}

TEST(reports, say_themselves_in_one_line) {
  resolution_report r = full_report();
  EXPECT_EQ(describe(r),
            "backend moetier.cpu.ref.none (degraded from moetier.cpu.avx2.none), carrier "
            "ucx.two_sided (fallback ucx.all_gather), routing generic, partial answers in bf16, "
            "resolution fedcba9876543210");
  EXPECT_EQ(describe_rejections(r),
            "backend moetier.cpu.avx2.none: sm_unsupported: the processor has no FMA (on "
            "worker@2)\n"
            "backend moetier.cuda.ref.none: possible: unknown device (on worker@1)\n"
            "carrier in_process: topology_unsupported: far (on worker@1)\n");
  r.winner.clear();
  r.selected = selected_by::failed;
  EXPECT_EQ(describe(r), "backend AUTO failed: 1 candidate rejected, 1 possible");
  r.selected = selected_by::undecided;
  EXPECT_EQ(describe(r), "backend AUTO undecided: 1 candidate rejected, 1 possible");
  EXPECT_EQ(read_report(canonical_json(r), "r")->selected, selected_by::undecided);
}

TEST(reports, refuse_every_cut_and_every_changed_key) {
  const std::string text = canonical_json(full_report());
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(read_report(text.substr(0, size), "r")) << size;
  // Each member's name in turn: unknown key, and a needed one is gone.
  for (std::size_t at = text.find("\":"); at != text.npos; at = text.find("\":", at + 1)) {
    std::string changed = text;
    changed[at - 1] = '~';
    const auto read = read_report(changed, "r");
    EXPECT_FALSE(read) << changed.substr(at > 20 ? at - 20 : 0, 24);
    if (!read) {
      EXPECT_EQ(read.error().why, reason::file_malformed);
    }
  }
}

TEST(reports, never_crash_on_changed_bytes) {
  const std::string text = canonical_json(full_report());
  std::uint64_t seed = 12345;
  for (int round = 0; round < 20000; ++round) {
    std::string changed = text;
    for (int k = 0; k < 3; ++k) {
      seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
      changed[(seed >> 33) % changed.size()] = static_cast<char>(seed >> 25);
    }
    const auto read = read_report(changed, "r");
    if (read) {
      EXPECT_EQ(*read_report(canonical_json(*read), "r"), *read);
    }
  }
}

TEST(reports, refuse_other_types_words_and_numbers) {
  const std::string good = canonical_json(full_report());
  const auto refusal = [&](const std::string& was, const std::string& is) {
    std::string text = good;
    const std::size_t at = text.find(was);
    EXPECT_NE(at, text.npos) << was;
    const auto read = read_report(text.replace(at, was.size(), is), "r");
    return read ? std::string("ok") : read.error().text;
  };
  EXPECT_EQ(refusal("fedcba9876543210", "fedcba987654321"),
            "r is malformed: resolution_id must be 16 hexadecimal digits");
  EXPECT_EQ(refusal("fedcba9876543210", "-edcba9876543210"),
            "r is malformed: resolution_id must be 16 hexadecimal digits");
  EXPECT_EQ(refusal("\"heuristic\"", "\"luck\""),
            "r is malformed: report selected_by must be one of pinned, heuristic, failed, "
            "undecided");
  EXPECT_EQ(refusal("\"sm_unsupported\"", "\"bad_mood\""),
            "r is malformed: reason bad_mood is not known");
  EXPECT_EQ(refusal("\"eligible\":[", "\"eligible\":[1,"),
            "r is malformed: report eligible entry 0 must be a text");
  EXPECT_EQ(refusal("\"workers\":[\"worker@2\"]", "\"workers\":{}"),
            "r is malformed: rejected workers must be a list of at most 4096");
  EXPECT_EQ(refusal("\"possible\":[{", "\"possible\":7,\"x\":[{"),
            "r is malformed: possible must be a list of at most 4096");
  EXPECT_EQ(refusal("\"routing\":{", "\"routing\":7,\"x\":{"),
            "r is malformed: routing must be an object");
  EXPECT_EQ(refusal("\"rejected\":[{", "\"rejected\":[7,{"),
            "r is malformed: rejected is no object");
  EXPECT_EQ(refusal("\"hidden_size\":4096", "\"hidden_size\":0"),
            "hidden_size is 0; allowed: 1 to 65536");
}

}  // namespace
}  // namespace moetier::resolution
