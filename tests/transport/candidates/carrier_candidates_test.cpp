#include <set>

#include <gtest/gtest.h>

#include "tests/schemas/resolution/small_values.hpp"
#include "transport/candidates/carrier_candidate.hpp"

namespace moetier::transport {
namespace {

using resolution::cpu_machine;
using resolution::deployment;
using resolution::environment;
using resolution::gpu_machine;
using resolution::problem;

const carrier_candidate& named(std::string_view name) {
  for (const carrier_candidate& c : carrier_candidates()) {
    if (c.name == name) return c;
  }
  ADD_FAILURE() << name;
  return carrier_candidates().front();
}

class question final {
 public:
  explicit question(std::string_view carrier, environment seen = cpu_machine())
      : c(named(carrier)), e(std::move(seen)) {}

  carrier_candidate c;
  problem p = resolution::small_problem();
  deployment d = resolution::small_deployment();
  environment e;
  carrier_wants wants;

  std::string answer() const {
    const auto v = can_implement(c, p, d, e, wants);
    if (v.eligible()) return "eligible";
    if (v.rejected()) return std::string(reject_name(v.why)) + ": " + v.detail;
    std::string text = "abstains";
    for (const std::string& field : v.unknown) text += " " + field;
    return text;
  }
};

TEST(carrier_candidates, stand_in_the_order_of_auto_with_distinct_names) {
  std::vector<std::string_view> order;
  std::set<std::string_view> names;
  for (const carrier_candidate& c : carrier_candidates()) {
    order.push_back(c.name);
    EXPECT_TRUE(names.insert(c.name).second);
    if (!c.short_name.empty()) {
      EXPECT_TRUE(names.insert(c.short_name).second);
    }
  }
  EXPECT_EQ(order, (std::vector<std::string_view>{
                       "in_process", "nvlink.one_sided", "nvlink.low_latency", "nccl.symmetric",
                       "nvlink.two_sided", "nccl.all_to_all", "shared_memory", "ucx.one_sided",
                       "ucx.two_sided", "nccl.all_gather", "ucx.all_gather"}));
}

TEST(carrier_candidates, are_opened_by_the_name_of_their_folder) {
  EXPECT_EQ(opened_as("ucx.two_sided"), "ucx");
  EXPECT_EQ(opened_as("in_process"), "in_process");
}

TEST(carrier_candidates, declare_the_bits_of_the_table) {
  EXPECT_FALSE(named("in_process").bits.lockstep);
  EXPECT_TRUE(named("in_process").bits.overlap_chunks);
  EXPECT_FALSE(named("ucx.two_sided").bits.overlap_chunks);
  EXPECT_TRUE(named("ucx.all_gather").bits.uniform_rows);
  EXPECT_EQ(named("ucx.all_gather").bits.min_rows, 1u);
  EXPECT_TRUE(named("nccl.all_to_all").bits.lockstep);
  EXPECT_TRUE(named("nvlink.one_sided").bits.checkpointable);
  EXPECT_FALSE(named("nvlink.low_latency").bits.carries_statistics);
  for (const carrier_candidate& c : carrier_candidates()) {
    EXPECT_TRUE(c.bits.non_uniform_slots) << c.name;
    EXPECT_TRUE(c.bits.finalise_before_combine) << c.name;
  }
}

TEST(carriers, run_where_they_can_and_say_what_lacks) {
  EXPECT_EQ(question("ucx.two_sided").answer(), "eligible");
  EXPECT_EQ(question("in_process").answer(),
            "topology_unsupported: members are separate processes");
  question one("in_process");
  one.d.one_process = true;
  EXPECT_EQ(one.answer(), "eligible");
  EXPECT_EQ(question("ucx.one_sided").answer(),
            "dep_missing: the worker's build or machine has no ucx.one_sided");
  EXPECT_EQ(question("nvlink.one_sided").answer(),
            "sm_unsupported: it needs a CUDA device; this worker has none");
  question far("nvlink.one_sided", gpu_machine());
  EXPECT_EQ(far.answer(), "eligible");
  far.d.labels = {"c/h1/d", "c/h2/d"};
  EXPECT_EQ(far.answer(), "topology_unsupported: workers are on more than one host");
}

TEST(carriers, hold_their_limits) {
  question q("nvlink.one_sided", gpu_machine());
  q.p.hidden_size = 4100;
  EXPECT_EQ(q.answer(), "shape_unaligned: a row of 8200 bytes is no multiple of 16");
  q.p.hidden_size = 4096;
  q.c.limits.members = 3;
  EXPECT_EQ(q.answer(), "eligible");
  q.c.limits.members = 2;
  EXPECT_EQ(q.answer(), "topology_unsupported: 3 members; at most 2");
  q.d.colocated = true;
  EXPECT_EQ(q.answer(), "eligible");
  question late("nvlink.low_latency", gpu_machine());
  late.e.carriers->push_back("nvlink.low_latency");
  EXPECT_EQ(late.answer(), "eligible");
  late.d.tokens_max = 129;
  EXPECT_EQ(
      late.answer(),
      "workload_infeasible: 129 tokens of a source; at most 128 (session.max_tokens, --tokens)");
  late.c.limits.top_k = 1;
  EXPECT_EQ(late.answer(), "workload_infeasible: 2 experts a token; at most 1");
}

TEST(carriers, have_the_bits_that_are_wanted_or_say_so) {
  question q("ucx.two_sided");
  q.wants = {.backend = "cpu_x", .all_gather_only = true};
  EXPECT_EQ(q.answer(), "capability_missing: cpu_x wants every row on every worker");
  question gather("ucx.all_gather");
  gather.e.carriers->push_back("ucx.all_gather");
  gather.wants.all_gather_only = true;
  EXPECT_EQ(gather.answer(), "eligible");
  gather.p.return_mode = resolution::answer_mode::exact;
  EXPECT_EQ(gather.answer(), "exact_unsupported: it returns weighted sums only");
  question custom("ucx.two_sided");
  custom.d.custom_finalise = true;
  EXPECT_EQ(custom.answer(), "eligible");
  custom.c.bits.finalise_before_combine = false;
  EXPECT_EQ(custom.answer(), "capability_missing: it combines before a function could finalise");
  question uneven("ucx.two_sided");
  uneven.d.num_slots = uneven.p.num_experts = 9;
  EXPECT_EQ(uneven.answer(), "eligible");
  uneven.c.bits.non_uniform_slots = false;
  EXPECT_EQ(uneven.answer(),
            "slots_not_divisible: 9 slots over 2 workers are uneven; take 10 slots with replicas, "
            "or 1 worker");
}

TEST(carriers, abstain_when_the_environment_does_not_know) {
  question q("nvlink.one_sided", environment{});
  EXPECT_EQ(q.answer(), "abstains device carriers");
}

}  // namespace
}  // namespace moetier::transport
