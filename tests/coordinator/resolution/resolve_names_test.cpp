// What a user names, and how far a name binds.

#include <gtest/gtest.h>

#include "coordinator/resolution/resolve.hpp"
#include "tests/coordinator/resolution/small_request.hpp"

namespace moetier::coordinator {
namespace {

using resolution::gpu_machine;
using resolution::resolution_report;
using resolution::selected_by;

TEST(names, are_taken_in_any_case_and_pin_what_they_name) {
  resolution_request r = small_request();
  r.backend = "Cpu_Ref";
  resolution_report report = report_of(r);
  EXPECT_EQ(report.winner, k_ref);
  EXPECT_EQ(report.selected, selected_by::pinned);
  EXPECT_EQ(report.requested, "CPU_REF");
  EXPECT_EQ(rejection_of(report.rejected, k_avx2),
            "path_not_enabled: it runs when asked for only, as CPU_AVX2 (worker@1,worker@2)");
  r.backend = "cpu";
  EXPECT_EQ(report_of(r).winner, k_avx2);
  for (auto& w : r.workers) w.seen.cpu_avx2 = false;
  report = report_of(r);
  EXPECT_EQ(report.winner, k_ref);
  EXPECT_EQ(report.selected, selected_by::pinned);  // a member of the family that was asked for
}

TEST(names, that_are_unknown_are_refused_before_any_report) {
  resolution_request r = small_request();
  r.backend = "fastest\n";
  EXPECT_EQ(refusal_of(r),
            "config_invalid: setting backend.force is fastest?; allowed: AUTO, CPU, CUDA, FUSED, "
            "REFERENCE, sm90_fp8, sm90_bf16, cuda_ref, cpu_avx2, cpu_ref, "
            "fused_lockstep, reference");
  r = small_request();
  r.where.communication = "pigeon";
  EXPECT_EQ(refusal_of(r),
            "config_invalid: setting transport.carrier is pigeon; allowed: auto, in_process, "
            "nvlink.one_sided, nvlink.low_latency, nccl.symmetric, nvlink.two_sided, "
            "nccl.all_to_all, shared_memory, ucx.one_sided, ucx.two_sided, nccl.all_gather, "
            "ucx.all_gather");
}

TEST(names, of_a_candidate_are_taken_in_every_form_that_reports_print) {
  resolution_request r = small_request();
  for (const char* name :
       {"moetier.cpu.avx2.none", "cpu.avx2", "CPU_AVX2", "cpu_avx2", "MOETIER.CPU.AVX2.NONE"}) {
    r.backend = name;
    EXPECT_EQ(report_of(r).winner, k_avx2) << name;
    EXPECT_EQ(report_of(r).requested, "CPU_AVX2") << name;
  }
  r = small_request(gpu_machine());
  r.what.quant = quant_kind::fp8_block;
  for (const char* name :
       {"cuda_sm90_fp8", "sm90_fp8", "cuda.sm90_fp8", "moetier.cuda.sm90_fp8.fp8_block"}) {
    r.backend = name;
    EXPECT_EQ(report_of(r).winner, "moetier.cuda.sm90_fp8.fp8_block") << name;
  }
  // Another format's identity, a part of a name, a provider alone.
  for (const char* name : {"moetier.cuda.sm90_fp8.none", "moetier.cuda.sm90_fp8", "avx2",
                           "moetier.", "moetier.fp8_block", "moetier_fp8_block"}) {
    r.backend = name;
    EXPECT_EQ(refusal_of(r).rfind("config_invalid: setting backend.force is", 0), 0u) << name;
  }
}

TEST(names, of_one_candidate_have_no_fallback) {
  resolution_request r = small_request();
  r.backend = "cpu_avx2";
  for (auto& w : r.workers) w.seen.cpu_avx2 = false;
  EXPECT_EQ(refusal_of(r),
            "backend_unresolved: no backend: moetier.cpu.avx2.none: sm_unsupported: the processor "
            "has no AVX2");
}

TEST(names, of_a_family_fall_back_to_that_of_the_devices) {
  resolution_request r = small_request();
  for (const char* name : {"FUSED", "cuda"}) {
    r.backend = name;
    const resolution_report report = report_of(r);
    EXPECT_EQ(report.winner, k_avx2) << name;
    EXPECT_TRUE(report.degraded()) << name;
    EXPECT_FALSE(report.degraded_from.empty()) << name;
  }
  r = small_request(gpu_machine());
  r.backend = "FUSED";
  EXPECT_EQ(report_of(r).winner, "moetier.cuda.sm90_bf16.none");
}

TEST(names, of_the_oracle_stay_without_fallback) {
  resolution_request r = small_request();
  EXPECT_EQ(why(r, "moetier.reference.scalar.none"),
            "path_not_enabled: it runs when asked for only, as REFERENCE (worker@1,worker@2)");
  r.backend = "reference";
  EXPECT_EQ(report_of(r).winner, "moetier.reference.scalar.none");
  EXPECT_EQ(report_of(r).eligible.size(), 1u);
  for (auto& w : r.workers) w.seen.kernels = {{"cpu.avx2", "cpu.ref"}};
  EXPECT_EQ(refusal_of(r),
            "backend_unresolved: no backend: moetier.reference.scalar.none: dep_missing: the "
            "worker's build has no reference.scalar");
}

}  // namespace
}  // namespace moetier::coordinator
