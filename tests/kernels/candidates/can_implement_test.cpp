#include <algorithm>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "kernels/candidates/backend_candidate.hpp"
#include "tests/schemas/resolution/small_values.hpp"

namespace moetier::kernels {
namespace {

using resolution::cpu_machine;
using resolution::deployment;
using resolution::environment;
using resolution::gpu_machine;
using resolution::problem;
using resolution::small_deployment;
using resolution::small_problem;
using resolution::verdict;

const backend_candidate& named(std::string_view short_name) {
  for (const backend_candidate& c : backend_candidates()) {
    if (c.short_name == short_name) return c;
  }
  ADD_FAILURE() << short_name;
  return backend_candidates().front();
}

std::string text_of(const verdict& v) {
  if (v.eligible()) return "eligible";
  if (v.rejected()) return std::string(reject_name(v.why)) + ": " + v.detail;
  std::string text = "abstains";
  for (const std::string& field : v.unknown) text += " " + field;
  return text;
}

// What a candidate answers once one thing was changed.
class question final {
 public:
  explicit question(std::string_view candidate, environment seen = cpu_machine())
      : c(named(candidate)), e(std::move(seen)) {}

  backend_candidate c;
  problem p = small_problem();
  deployment d = small_deployment();
  environment e;

  std::string answer() const { return text_of(can_implement(c, p, d, e)); }
};

TEST(backend_candidates, have_distinct_names_and_identities_that_lead_back) {
  std::set<std::string> names;
  for (const backend_candidate& c : backend_candidates()) {
    EXPECT_TRUE(names.insert(std::string(c.short_name)).second);
    const std::string identity = identity_of(c, quant_kind::fp8_block);
    EXPECT_TRUE(names.insert(identity).second);
    quant_kind quant{};
    EXPECT_EQ(candidate_of(identity, quant), &c) << identity;
    EXPECT_EQ(quant, quant_kind::fp8_block);
  }
  quant_kind quant{};
  EXPECT_EQ(identity_of(named("cpu_avx2"), quant_kind::none), "moetier.cpu.avx2.none");
  for (const char* other : {"", "moetier.", "moetier.none", "moetier.cpu.avx2", "cpu.avx2.none",
                            "moetier.cpu.avx2.w8", "moetier.cpu.avx9.none"})
    EXPECT_EQ(candidate_of(other, quant), nullptr) << other;
}

// Whatever the resolver lets run, the worker must be able to build and launch.
TEST(can_implement, knows_what_the_device_kernels_cannot_launch) {
  question fp8("sm90_fp8", gpu_machine());
  fp8.p.quant = quant_kind::fp8_block;
  fp8.e.memory_bytes = std::uint64_t{1} << 60;
  fp8.e.kernels->push_back("cuda.sm90_fp8");
  fp8.p.hidden_size = fp8.p.intermediate_size = 24576;
  EXPECT_EQ(fp8.answer(), "eligible");
  fp8.p.hidden_size = 24704;
  EXPECT_EQ(fp8.answer(), "capability_missing: hidden size 24704; at most 24576");
  fp8.p.hidden_size = 128;
  fp8.p.intermediate_size = 24704;
  EXPECT_EQ(fp8.answer(), "capability_missing: intermediate size 24704; at most 24576");

  question bf16("sm90_bf16", gpu_machine());
  bf16.p.num_experts = 64;
  bf16.p.top_k = 32;
  EXPECT_EQ(bf16.answer(), "eligible");
  bf16.p.top_k = 33;
  EXPECT_EQ(bf16.answer(), "routing_unsupported: top_k is 33; at most 32");
}

TEST(can_implement, says_yes_on_a_machine_that_has_all) {
  EXPECT_EQ(question("cpu_avx2").answer(), "eligible");
  EXPECT_EQ(question("cpu_ref").answer(), "eligible");
  EXPECT_EQ(question("reference").answer(), "eligible");
  EXPECT_EQ(question("sm90_bf16", gpu_machine()).answer(), "eligible");
  EXPECT_EQ(question("cuda_ref", gpu_machine()).answer(), "eligible");
}

TEST(can_implement, knows_processors_and_devices) {
  question q("cpu_avx2");
  q.e.cpu_fma = false;
  EXPECT_EQ(q.answer(), "sm_unsupported: the processor has no FMA");
  q.e.cpu_avx2 = false;
  EXPECT_EQ(q.answer(), "sm_unsupported: the processor has neither AVX2 nor FMA");
  q.e.cpu_fma.reset();
  EXPECT_EQ(q.answer(), "sm_unsupported: the processor has no AVX2");
  question coded("cpu_avx2");
  coded.e.cpu_f16c = false;
  EXPECT_EQ(coded.answer(), "eligible");
  coded.p.quant = quant_kind::fp8_block;
  EXPECT_EQ(coded.answer(), "sm_unsupported: the processor has no F16C for fp8_block weights");
  EXPECT_EQ(question("cuda_ref").answer(),
            "sm_unsupported: it needs a CUDA device; this worker has none");
  question other("sm90_bf16", gpu_machine());
  other.e.architecture = "sm_80";
  EXPECT_EQ(other.answer(), "sm_unsupported: it needs sm_90; the device is sm_80");
}

TEST(can_implement, explains_a_size_that_no_fast_kernel_takes_even_where_none_is_built) {
  question q("sm90_bf16", gpu_machine());
  q.e.kernels = {{"cpu.avx2", "cpu.ref"}};
  EXPECT_EQ(q.answer(), "dep_missing: the worker's build has no cuda.sm90_bf16");
  q.p.hidden_size = 2880;
  EXPECT_EQ(q.answer(), "dep_missing: the worker's build has no cuda.sm90_bf16");
  q.p.hidden_size = 2890;
  EXPECT_EQ(q.answer(),
            "shape_unaligned: hidden size 2890 is no multiple of 64; the nearest is 2880");
  q.p.hidden_size = 2930;
  EXPECT_EQ(q.answer(),
            "shape_unaligned: hidden size 2930 is no multiple of 64; the nearest is 2944");
  q.p.hidden_size = 8;
  EXPECT_EQ(q.answer(), "shape_unaligned: hidden size 8 is no multiple of 64; the nearest is 64");
}

TEST(can_implement, wants_whole_groups_of_scales) {
  question fp8("sm90_fp8", gpu_machine());
  fp8.p.quant = quant_kind::fp8_block;
  EXPECT_EQ(fp8.answer(), "eligible");
  fp8.p.intermediate_size = 1472;
  EXPECT_EQ(fp8.answer(),
            "shape_unaligned: intermediate size 1472 is no multiple of 128; the nearest is 1408");
  question cpu("cpu_ref");
  cpu.p.quant = quant_kind::fp8_block;
  cpu.p.hidden_size = 4100;
  EXPECT_EQ(cpu.answer(), "eligible");  // its last block is shorter
  cpu.p.quant = quant_kind::mxfp4;
  EXPECT_EQ(cpu.answer(),
            "shape_unaligned: hidden size 4100 is no multiple of 32; the nearest is 4096");
  EXPECT_EQ(multiples_of(named("cuda_ref"), quant_kind::nvfp4).hidden, 16u);
}

TEST(can_implement, names_the_device_before_formats_and_types_and_the_rows_last) {
  question q("sm90_fp8");
  q.p.dtype_act = dtype::f16;
  EXPECT_EQ(q.answer(), "sm_unsupported: it needs a CUDA device; this worker has none");
  q.e = gpu_machine();
  EXPECT_EQ(q.answer(), "quant_unsupported: weights are unquantised; it takes fp8_block");
  q.p.quant = quant_kind::fp8_block;
  EXPECT_EQ(q.answer(), "dtype_unsupported: hidden rows are f16; it takes f32, bf16");
  q.e.kernels->clear();
  EXPECT_EQ(q.answer().rfind("dep_missing", 0), 0u) << q.answer();
}

TEST(can_implement, knows_formats_and_types) {
  question q("sm90_fp8", gpu_machine());
  EXPECT_EQ(q.answer(), "quant_unsupported: weights are unquantised; it takes fp8_block");
  question bf16("sm90_bf16", gpu_machine());
  bf16.p.stored = dtype::f32;
  EXPECT_EQ(bf16.answer(), "dtype_unsupported: weights are f32; it takes bf16");
  bf16.p.stored = dtype::bf16;
  bf16.p.dtype_act = dtype::f16;
  EXPECT_EQ(bf16.answer(), "dtype_unsupported: hidden rows are f16; it takes f32, bf16");
}

TEST(can_implement, knows_slots_rows_and_memory) {
  question q("sm90_bf16", gpu_machine());
  q.c.rows_max = 128;
  q.d.tokens_max = 129;
  EXPECT_EQ(
      q.answer(),
      "workload_infeasible: a chunk has 129 rows; at most 128 (session.max_tokens, --tokens)");
  q.d.tokens_max = 128;
  q.d.num_slots = 2050;
  q.d.moe_layers = 0;
  EXPECT_EQ(q.answer(), "slot_count: 1025 slots on one worker; at most 1024");
  question cpu("cpu_ref");
  cpu.e.host_memory_bytes = 2818572288;
  EXPECT_EQ(cpu.answer(), "eligible");
  cpu.e.host_memory_bytes = 1000;
  EXPECT_EQ(cpu.answer(),
            "memory_insufficient: weights of 2 layers with 4 slots need 2818572288 bytes; 1000 are "
            "there");
  cpu.d.moe_layers = 0;
  EXPECT_EQ(cpu.answer(), "eligible");
}

TEST(can_implement, abstains_when_something_it_needs_is_unknown) {
  question q("cpu_avx2");
  q.e.cpu_avx2.reset();
  q.e.host_memory_bytes.reset();
  EXPECT_EQ(q.answer(), "abstains cpu_avx2 host_memory_bytes");
  q.e.kernels.reset();
  EXPECT_EQ(q.answer(), "abstains cpu_avx2 host_memory_bytes kernels");
  q.e.kernels = {{"cpu.ref"}};  // a reason is worth more than a doubt
  EXPECT_EQ(q.answer(), "dep_missing: the worker's build has no cpu.avx2");
  EXPECT_EQ(text_of(can_implement(named("cuda_ref"), q.p, q.d, {})),
            "abstains device memory_bytes kernels");
  EXPECT_EQ(text_of(can_implement(named("cpu_ref"), q.p, q.d, {})),
            "abstains host_memory_bytes kernels");
}

TEST(can_implement, serves_with_one_tensor_part_and_its_own_scheduler) {
  question q("cpu_avx2");
  q.d.tp_size = 2;
  EXPECT_EQ(q.answer(), "topology_unsupported: tensor parallel size 2; give 1");
  q.d.scheduler = resolution::scheduler_wish::fused_comm;
  EXPECT_EQ(q.answer(), "topology_unsupported: tensor parallel size 2; give 1");
  q.d.tp_size = 1;
  EXPECT_EQ(q.answer(),
            "scheduler_unsupported: it runs with external_comm; fused_comm was asked for");
  q.d.scheduler = resolution::scheduler_wish::external_comm;
  EXPECT_EQ(q.answer(), "eligible");
}

TEST(can_implement, fuses_only_where_all_workers_are_sources_in_one_domain) {
  question q("fused_lockstep");
  EXPECT_EQ(q.answer(),
            "topology_unsupported: it exchanges inside its kernel: every worker must be a source "
            "too");
  q.d.colocated = true;
  q.d.sources = 2;
  EXPECT_EQ(q.answer(), "dep_missing: the worker's build has no cpu.fused_lockstep");
  q.d.labels = {"c/h/1", "c/h/2"};
  EXPECT_EQ(q.answer(),
            "topology_unsupported: it exchanges inside its kernel: all workers must share one "
            "domain");
  q.d.labels.clear();
  q.p.num_experts = q.d.num_slots = 9;
  EXPECT_EQ(q.answer(),
            "slots_not_divisible: 9 slots over 2 workers are uneven; take 10 slots with replicas, "
            "or 1 worker");
}

TEST(can_implement, asks_for_the_bits_that_the_problem_needs) {
  question q("sm90_fp8", gpu_machine());
  q.p.quant = quant_kind::fp8_block;
  q.p.expert_bias = true;
  EXPECT_EQ(q.answer(), "capability_missing: it adds no expert bias");
  question input("cpu_ref");
  input.p.weight_at = weight_point::input;
  EXPECT_EQ(input.answer(),
            "routing_unsupported: the router weight on the input needs one expert a token; top_k "
            "is 2");
  input.p.top_k = 1;
  EXPECT_EQ(input.answer(), "eligible");
  input.d.custom_finalise = true;
  EXPECT_EQ(input.answer(),
            "capability_missing: a function of its own cannot finalise with the router weight on "
            "the input");
  input.p.weight_at = weight_point::output;
  EXPECT_EQ(input.answer(), "eligible");
  input.c.bits.supports_unfinalised = false;
  EXPECT_EQ(input.answer(), "capability_missing: it gives no unfinalised rows");
  question bits("cpu_ref");
  bits.c.bits.supports_weight_on_input = false;
  bits.p.weight_at = weight_point::input;
  bits.p.top_k = 1;
  EXPECT_EQ(bits.answer(), "capability_missing: it takes no router weight on the input");
}

TEST(can_implement, gives_the_reasons_that_no_built_candidate_has) {
  question q("cpu_ref");
  q.c.is_backend = false;
  EXPECT_EQ(q.answer(), "not_an_impl: it has no implementation to serve with");
  q = question("cpu_ref");
  q.c.deprecated = true;
  EXPECT_EQ(q.answer(), "backend_deprecated: it is no longer chosen");
  q = question("cpu_ref");
  q.c.bits.supports_eplb = false;
  q.d.eplb = true;
  EXPECT_EQ(q.answer(), "eplb_unsupported: it cannot serve replicas");
  q.d.workers = 1;
  EXPECT_EQ(q.answer(), "eligible");
  q = question("cpu_ref");
  q.c.methods = bit_of(routing_method::llama4);
  EXPECT_EQ(q.answer(), "routing_unsupported: it cannot follow renormalize");
  q = question("cpu_ref");
  q.c.bits.needs_fused_finalise = true;
  EXPECT_EQ(q.answer(), "eligible");
  q.d.fused_finalise = false;
  EXPECT_EQ(q.answer(), "finalise_fusion_required: it finalises inside its kernel only");
}

TEST(can_implement, reads_held_pages_in_its_own_layout_only) {
  question q("cpu_avx2");
  q.d.held_layout = "panels.bf16.bias";
  EXPECT_EQ(q.answer(), "eligible");
  q.d.held_layout = "plain.bf16";
  EXPECT_EQ(q.answer(), "weight_layout: pages lie in plain.bf16; it reads those of panels");
  q.d.held_layout = "panels16.bf16";
  EXPECT_EQ(q.answer(), "weight_layout: pages lie in panels16.bf16; it reads those of panels");
  q.e.layouts.clear();
  EXPECT_EQ(q.answer(), "abstains layouts.cpu.avx2");
}

TEST(can_implement, declares_weights_from_other_workers_and_refuses_them) {
  question q("cpu_ref");
  q.d.dwdp = true;
  EXPECT_EQ(q.answer(), "path_not_enabled: weights are not passed from worker to worker");
}

// Pure: whatever was asked before, in whatever order.
TEST(can_implement, answers_the_same_in_any_order) {
  std::vector<question> all;
  for (const backend_candidate& c : backend_candidates()) {
    for (const environment& e : {cpu_machine(), gpu_machine(), environment{}}) {
      question q(c.short_name, e);
      all.push_back(q);
      q.p.quant = quant_kind::mxfp4;
      all.push_back(q);
      q.p.hidden_size = 100;
      all.push_back(q);
      q.d.num_slots = q.p.num_experts = 9;
      all.push_back(q);
    }
  }
  std::vector<std::string> first;
  for (const question& q : all) first.push_back(q.answer());
  std::vector<std::size_t> order(1000);
  std::mt19937 dice(7);
  for (std::size_t& at : order) at = dice() % all.size();
  for (const std::size_t at : order) EXPECT_EQ(all[at].answer(), first[at]);
}

}  // namespace
}  // namespace moetier::kernels
