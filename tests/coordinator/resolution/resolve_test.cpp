#include "coordinator/resolution/resolve.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <gtest/gtest.h>

#include "tests/coordinator/resolution/small_request.hpp"

namespace moetier::coordinator {
namespace {

using kernels::backend_candidate;
using resolution::answer_mode;
using resolution::cpu_machine;
using resolution::gpu_machine;
using resolution::reject_reason;
using resolution::resolution_report;
using resolution::selected_by;

using names = std::vector<std::string>;

TEST(resolving, takes_the_widest_instruction_set_of_a_processor) {
  const resolution_report r = report_of(small_request());
  EXPECT_EQ(r.winner, k_avx2);
  EXPECT_EQ(r.requested, "AUTO");
  EXPECT_EQ(r.selected, selected_by::pinned);
  EXPECT_EQ(r.eligible, (names{k_avx2, k_ref}));
  EXPECT_EQ(r.communication.winner, "ucx.two_sided");
  EXPECT_EQ(r.communication.fallback, "");
  EXPECT_EQ(r.combine_dtype, dtype::f32);
  EXPECT_TRUE(r.degraded_from.empty());
  EXPECT_EQ(r.env_fingerprints.size(), 2u);
  EXPECT_EQ(r.env_fingerprints[0].second, fingerprint_of(cpu_machine()));
  EXPECT_EQ(r.what, resolution::small_problem());
  EXPECT_EQ(*resolve(small_request()), r);
}

TEST(resolving, takes_the_most_special_kernel_of_a_gpu) {
  resolution_request r = small_request(gpu_machine());
  r.where.moe_layers = 0;
  resolution_report report = report_of(r);
  EXPECT_EQ(report.winner, "moetier.cuda.sm90_bf16.none");
  EXPECT_EQ(report.eligible, (names{"moetier.cuda.sm90_bf16.none", "moetier.cuda.ref.none"}));
  EXPECT_EQ(report.communication.winner, "nvlink.one_sided");
  EXPECT_EQ(report.communication.fallback, "ucx.two_sided");
  EXPECT_EQ(report.combine_dtype, dtype::bf16);
  r.what.dtype_act = dtype::f32;
  EXPECT_EQ(report_of(r).winner, "moetier.cuda.sm90_bf16.none");
  EXPECT_EQ(report_of(r).combine_dtype, dtype::f32);
  r.what.hidden_size = 4112;
  report = report_of(r);
  EXPECT_EQ(report.winner, "moetier.cuda.ref.none");
  EXPECT_TRUE(report.degraded());
  EXPECT_EQ(rejection_of(report.rejected, "moetier.cuda.sm90_bf16.none"),
            "shape_unaligned: hidden size 4112 is no multiple of 64; the nearest is 4096 "
            "(worker@1,worker@2)");
}

TEST(resolving, asks_every_candidate_and_tells_what_became_of_each) {
  const resolution_report r = report_of(small_request());
  std::set<std::string> told(r.eligible.begin(), r.eligible.end());
  for (const auto& rejected : r.rejected) {
    told.insert(rejected.candidate);
    EXPECT_EQ(rejected.workers, (names{"worker@1", "worker@2"})) << rejected.candidate;
    EXPECT_FALSE(rejected.detail.empty());
  }
  EXPECT_EQ(told.size(), kernels::backend_candidates().size());
  std::set<std::string> carriers{r.communication.winner};
  for (const auto& rejected : r.communication.rejected) carriers.insert(rejected.candidate);
  EXPECT_EQ(carriers.size(), transport::carrier_candidates().size());
}

TEST(resolving, asks_every_worker) {
  resolution_request r = small_request();
  r.workers[1].seen.cpu_fma = false;
  const resolution_report report = report_of(r);
  EXPECT_EQ(report.winner, k_ref);
  EXPECT_EQ(rejection_of(report.rejected, k_avx2),
            "sm_unsupported: the processor has no FMA (worker@2)");
}

TEST(resolving, tells_different_reasons_of_different_workers) {
  resolution_request r = small_request();
  r.workers[0].seen.cpu_avx2 = false;
  r.workers[1].seen.cpu_fma = false;
  EXPECT_EQ(why(r, k_avx2),
            "sm_unsupported: the processor has no AVX2 (worker@1) | sm_unsupported: the processor "
            "has no FMA (worker@2)");
}

TEST(degrading, is_reported_with_its_trail_and_can_be_forbidden) {
  resolution_request r = small_request();
  for (auto& w : r.workers) w.seen.cpu_avx2 = false;
  const resolution_report report = report_of(r);
  EXPECT_EQ(report.winner, k_ref);
  EXPECT_EQ(report.selected, selected_by::heuristic);
  EXPECT_EQ(report.degraded_from, (names{k_avx2}));
  EXPECT_EQ(refusal_of(r), "ok");
  r.allow_degradation = false;
  EXPECT_EQ(refusal_of(r),
            "degrade_forbidden: degrading is forbidden: moetier.cpu.ref.none would run instead of "
            "AUTO: moetier.cpu.avx2.none: sm_unsupported: the processor has no AVX2");
  EXPECT_EQ(report_of(r).winner, k_ref);  // the report shows what would have run
}

TEST(adapters, are_taken_over_plain_weights_only) {
  resolution_request r = small_request();
  r.where.lora_routed = true;
  r.where.fused_finalise = false;
  EXPECT_EQ(report_of(r).winner, k_avx2);
  r.what.quant = quant_kind::fp8_tensor;
  EXPECT_EQ(refusal_of(r),
            "backend_unresolved: no backend: moetier.cpu.avx2.fp8_tensor: lora_unsupported: it "
            "takes no adapters over fp8_tensor weights; moetier.cpu.ref.fp8_tensor: "
            "lora_unsupported: it takes no adapters over fp8_tensor weights");
  r = small_request(gpu_machine());
  r.where.lora_routed = true;
  EXPECT_EQ(why(r, "moetier.cuda.sm90_bf16.none"),
            "lora_unsupported: it takes no adapters (worker@1,worker@2)");
}

TEST(activations, must_be_executed_with_every_constant_that_is_given) {
  resolution_request r = small_request(gpu_machine());
  r.what.activation = activation_kind::situ;
  EXPECT_EQ(why(r, "moetier.cuda.sm90_bf16.none"),
            "activation_unsupported: it does not execute situ (worker@1,worker@2)");
  r.what.activation = activation_kind::swiglu;
  r.what.constant_clamp = true;
  EXPECT_EQ(report_of(r).winner, "moetier.cuda.sm90_bf16.none");
  std::array fakes{kernels::backend_candidates()[1]};
  ASSERT_EQ(fakes[0].short_name, "sm90_bf16");
  fakes[0].constants = {};
  r.backends = fakes;
  r.what.constant_alpha = r.what.constant_beta = true;
  EXPECT_EQ(why(r, "moetier.cuda.sm90_bf16.none"),
            "activation_unsupported: it ignores alpha, beta, clamp of swiglu (worker@1,worker@2)");
}

TEST(exact_answers, need_rows_that_depend_on_no_other_row) {
  resolution_request r = small_request();
  r.what.return_mode = answer_mode::exact;
  EXPECT_EQ(report_of(r).winner, k_avx2);
  std::vector<backend_candidate> fakes(kernels::backend_candidates().begin(),
                                       kernels::backend_candidates().end());
  for (backend_candidate& c : fakes) c.bits.row_invariant = false;
  r.backends = fakes;
  EXPECT_EQ(why(r, k_avx2),
            "exact_unsupported: exact answers need rows whose bits depend on no other row "
            "(worker@1,worker@2)");
}

TEST(reasons, of_the_candidate_itself_win_over_those_asked_later) {
  resolution_request r = small_request();
  r.what.return_mode = answer_mode::exact;
  r.what.activation = activation_kind::situ;
  EXPECT_EQ(why(r, "moetier.cuda.sm90_bf16.none"),
            "sm_unsupported: it needs a CUDA device; this worker has none (worker@1,worker@2)");
  // Adapters are asked first of all.
  r.where.lora_routed = true;
  EXPECT_EQ(why(r, "moetier.cuda.sm90_bf16.none"),
            "lora_unsupported: it takes no adapters (worker@1,worker@2)");
}

TEST(abstaining, is_possible_offline_and_not_proven_at_the_start) {
  resolution_request r = small_request();
  r.workers[1].seen.cpu_avx2.reset();
  r.offline = true;
  resolution_report report = report_of(r);
  EXPECT_EQ(report.winner, k_ref);  // an unproven candidate cannot win
  ASSERT_EQ(report.possible.size(), 1u);
  EXPECT_EQ(report.possible[0], (resolution::possibility{k_avx2, {"cpu_avx2"}, {"worker@2"}}));
  r.offline = false;
  report = report_of(r);
  EXPECT_TRUE(report.possible.empty());
  EXPECT_EQ(rejection_of(report.rejected, k_avx2), "not_proven: unknown: cpu_avx2 (worker@2)");
}

TEST(abstaining, of_one_worker_is_no_possibility_where_another_says_no) {
  resolution_request r = small_request();
  r.offline = true;
  r.workers[0].seen.cpu_avx2.reset();
  r.workers[1].seen.cpu_avx2 = false;
  const resolution_report report = report_of(r);
  EXPECT_TRUE(report.possible.empty());
  EXPECT_EQ(rejection_of(report.rejected, k_avx2),
            "sm_unsupported: the processor has no AVX2 (worker@2)");
}

TEST(abstaining, of_all_carriers_leaves_the_backend_possible) {
  resolution_request r = small_request();
  r.offline = true;
  for (auto& w : r.workers) w.seen.carriers.reset();
  const resolution_report report = report_of(r);
  EXPECT_EQ(report.winner, "");
  ASSERT_FALSE(report.possible.empty());
  EXPECT_EQ(report.possible[0].candidate, k_avx2);
  EXPECT_EQ(report.possible[0].unknown, (names{"carriers"}));
}

TEST(partitions, that_nobody_could_serve_are_errors) {
  resolution_request r = small_request();
  r.what.num_experts = r.where.num_slots = 1;
  r.what.top_k = 1;
  EXPECT_EQ(refusal_of(r),
            "partition_invalid: 1 experts cannot be divided over 2 workers: give at most 1 "
            "workers, or 2 slots with replicas");
}

TEST(replicas, of_one_worker_are_noted_to_have_no_effect) {
  resolution_request r = small_request();
  r.where.workers = 1;
  r.where.eplb = true;
  r.workers.pop_back();
  EXPECT_EQ(report_of(r).notes, (names{"replicas have no effect: there is one worker"}));
}

TEST(agreement, of_workers_is_checked_before_anything_is_weighed) {
  resolution_request r = small_request();
  r.workers[1].seen.numerics_combine = 2;
  EXPECT_EQ(refusal_of(r),
            "agreement_failed: workers do not agree: numerics_combine is 1 on worker@1, 2 on "
            "worker@2");
  r = small_request();
  r.workers[1].seen.kernel_set_hash = "other";
  EXPECT_EQ(refusal_of(r), "ok");
  r.what.return_mode = answer_mode::exact;
  EXPECT_EQ(refusal_of(r),
            "agreement_failed: workers do not agree: kernel_set_hash is 1234 on worker@1, other on "
            "worker@2");
}

TEST(agreement, on_the_problem_is_part_of_it) {
  resolution_request r = small_request();
  const std::uint64_t hash = hash_of(r.what);
  r.problem_hashes = {hash, hash};
  EXPECT_EQ(refusal_of(r), "ok");
  r.problem_hashes = {hash, 0x1234};
  EXPECT_EQ(refusal_of(r),
            "agreement_failed: workers do not agree: problem is 0000000000001234 on worker@2; the "
            "tier's is " +
                fmt::format("{:016x}", hash));
}

TEST(failed_prepare, of_one_worker_moves_all) {
  resolution_request r = small_request();
  const auto again =
      resolve_again(r, {.candidate = k_avx2, .worker = "worker@2", .detail = "self-test differs"});
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_EQ(again->winner, k_ref);
  EXPECT_TRUE(again->degraded());
  EXPECT_EQ(rejection_of(again->rejected, k_avx2),
            "prepare_failed: worker@2 could not prepare it: self-test differs (worker@1,worker@2)");
  const auto none =
      resolve_again(r, {.candidate = k_ref, .worker = "worker@1", .detail = "no memory"});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().why, reason::backend_unresolved);
}

TEST(failed_prepare, of_a_carrier_takes_the_next) {
  resolution_request r = small_request();
  r.where.one_process = true;
  EXPECT_EQ(report_of(r).communication.winner, "in_process");
  const auto again =
      resolve_again(r, {.candidate = "in_process", .worker = "worker@1", .detail = "no hub"});
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_EQ(again->communication.winner, "ucx.two_sided");
  EXPECT_EQ(again->winner, k_avx2);
}

TEST(resting_candidates, are_quarantined) {
  resolution_request r = small_request();
  r.resting = {{.candidate = k_avx2, .detail = "60 s after its last failure"}};
  EXPECT_EQ(why(r, k_avx2), "quarantined: 60 s after its last failure (worker@1,worker@2)");
  EXPECT_EQ(report_of(r).winner, k_ref);
}

TEST(resolution_ids, follow_from_winner_carrier_and_problem) {
  const resolution_report r = report_of(small_request());
  EXPECT_EQ(r.resolution_id,
            resolution_id_of(k_avx2, "ucx.two_sided", hash_of(resolution::small_problem())));
  EXPECT_NE(r.resolution_id, resolution_id_of(k_ref, "ucx.two_sided", hash_of(r.what)));
  EXPECT_NE(r.resolution_id, resolution_id_of(k_avx2, "in_process", hash_of(r.what)));
  resolution_request other = small_request();
  other.what.top_k = 1;
  EXPECT_NE(report_of(other).resolution_id, r.resolution_id);
  resolution_request machines = small_request();
  for (auto& w : machines.workers) w.seen.build_id = "another";
  EXPECT_EQ(report_of(machines).resolution_id, r.resolution_id);
}

TEST(requests, must_bring_one_environment_for_each_worker) {
  resolution_request r = small_request();
  r.workers.pop_back();
  EXPECT_EQ(refusal_of(r),
            "invalid_argument: environments is 1; allowed: one for each of 2 workers");
  r = small_request();
  r.problem_hashes = {1};
  EXPECT_EQ(refusal_of(r),
            "invalid_argument: problem_hashes is 1; allowed: none, or one for each of 2 workers");
  r = small_request();
  r.what.hidden_size = 0;
  EXPECT_EQ(refusal_of(r), "invalid_argument: hidden_size is 0; allowed: 1 to 65536");
}

TEST(reports, of_a_resolution_read_back) {
  resolution_request r = small_request();
  r.epoch = 3;
  r.routing.kernel = "generic";
  const resolution_report report = report_of(r);
  EXPECT_EQ(*resolution::read_report(canonical_json(report), "r"), report);
  EXPECT_EQ(report.epoch, 3u);
  EXPECT_EQ(report.routing.kernel, "generic");
}

TEST(resolving, is_the_same_however_often_and_in_which_order_it_is_asked) {
  const std::string once = canonical_json(report_of(small_request()));
  for (int i = 0; i < 20; ++i) {
    report_of(small_request(gpu_machine()));
    EXPECT_EQ(canonical_json(report_of(small_request())), once);
  }
}

// Every reason of the closed list is given by the table, a fake candidate or the resolver.
TEST(reject_reasons, are_all_reached) {
  std::set<reject_reason> reached;
  const auto note = [&](const resolution_request& r) {
    const auto outcome = weigh(r);
    ASSERT_TRUE(outcome) << outcome.error().text;
    for (const auto& x : outcome->report.rejected) reached.insert(x.why);
    for (const auto& x : outcome->report.communication.rejected) reached.insert(x.why);
  };
  const auto with = [&](auto change) {
    for (const auto& machine : {cpu_machine(), gpu_machine()}) {
      resolution_request r = small_request(machine);
      std::vector<backend_candidate> fakes(kernels::backend_candidates().begin(),
                                           kernels::backend_candidates().end());
      r.backends = fakes;
      change(r, fakes);
      note(r);
    }
  };
  using request = resolution_request;
  using fakes = std::vector<backend_candidate>;
  with([](request&, fakes&) {});
  with([](request& r, fakes&) { r.what.quant = quant_kind::mxfp8; });
  with([](request& r, fakes&) { r.what.dtype_act = dtype::f16; });
  with([](request& r, fakes&) { r.what.hidden_size = 4100; });
  with([](request& r, fakes& f) {
    for (auto& c : f) c.bits.non_uniform_slots = false;
    r.what.num_experts = r.where.num_slots = 9;
  });
  with([](request& r, fakes&) { r.where.lora_routed = true; });
  with([](request& r, fakes&) { r.what.activation = activation_kind::relu2; });
  with([](request& r, fakes&) { r.what.weight_at = weight_point::input; });
  with([](request& r, fakes& f) {
    for (auto& c : f) c.bits.supports_eplb = false;
    r.where.eplb = true;
  });
  with([](request& r, fakes& f) {
    for (auto& c : f) c.bits.needs_fused_finalise = true;
    r.where.fused_finalise = false;
  });
  with([](request& r, fakes&) { r.where.dwdp = true; });
  with([](request&, fakes& f) { f[5].deprecated = true; });
  with([](request&, fakes& f) { f[5].is_backend = false; });
  with([](request& r, fakes&) {
    for (auto& w : r.workers) w.seen.kernels.reset();
  });
  with([](request& r, fakes&) {
    r.what.num_experts = r.where.num_slots = 2056;
    r.where.eplb = false;
    r.what.top_k = 2;
    r.where.moe_layers = 0;
  });
  with([](request& r, fakes&) { r.where.held_layout = "plain.bf16"; });
  with([](request& r, fakes& f) {
    for (auto& c : f) c.bits.supports_expert_bias = false;
    r.what.expert_bias = true;
  });
  with([](request& r, fakes& f) {
    for (auto& c : f) c.bits.row_invariant = false;
    r.what.return_mode = answer_mode::exact;
  });
  with([](request& r, fakes&) { r.where.scheduler = resolution::scheduler_wish::fused_comm; });
  with([](request& r, fakes& f) {
    for (auto& c : f) c.rows_max = 128;
    r.where.tokens_max = 4096;
  });
  with([](request& r, fakes&) {
    for (auto& w : r.workers) w.seen.host_memory_bytes = w.seen.memory_bytes = 1;
  });
  with([](request& r, fakes&) { r.failures = {{k_avx2, "worker@1", "x"}}; });
  with([](request& r, fakes&) { r.resting = {{k_avx2, "x"}}; });
  for (unsigned i = 0; i < resolution::k_reject_reasons; ++i) {
    const auto reason = static_cast<reject_reason>(i);
    EXPECT_TRUE(reached.contains(reason)) << reject_name(reason);
  }
}

}  // namespace
}  // namespace moetier::coordinator
