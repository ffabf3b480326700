// The carrier that goes with a backend.

#include <gtest/gtest.h>

#include "coordinator/resolution/resolve.hpp"
#include "tests/coordinator/resolution/small_request.hpp"

namespace moetier::coordinator {
namespace {

using resolution::answer_mode;
using resolution::gpu_machine;
using resolution::resolution_report;

TEST(carriers, are_none_where_nothing_is_exchanged) {
  resolution_request r = small_request();
  r.where.workers = 1;
  r.where.colocated = true;
  r.workers.pop_back();
  EXPECT_EQ(report_of(r).communication.winner, "none");
  r.where.colocated = false;
  EXPECT_EQ(report_of(r).communication.winner, "ucx.two_sided");
  r.where.one_process = true;
  const resolution_report report = report_of(r);
  EXPECT_EQ(report.communication.winner, "in_process");
  EXPECT_EQ(report.communication.fallback, "ucx.two_sided");
}

TEST(carriers, are_none_where_the_kernel_itself_exchanges) {
  resolution_request r = small_request();
  r.where.colocated = true;
  r.where.sources = 2;
  r.backend = "fused";
  for (auto& w : r.workers) w.seen.kernels->push_back("cpu.fused_lockstep");
  const resolution_report report = report_of(r);
  EXPECT_EQ(report.winner, "moetier.cpu.fused_lockstep.none");
  EXPECT_EQ(report.communication.winner, "none");
  r.what.return_mode = answer_mode::exact;
  EXPECT_EQ(rejection_of(report_of(r).rejected, "moetier.cpu.fused_lockstep.none"),
            "exact_unsupported: exact answers need rows whose bits depend on no other row "
            "(worker@1,worker@2)");
}

TEST(carriers, asked_for_by_name_run_or_fail_with_what_lacks) {
  resolution_request r = small_request(gpu_machine());
  r.where.communication = "UCX";
  resolution_report report = report_of(r);
  EXPECT_EQ(report.communication.winner, "ucx.two_sided");
  EXPECT_EQ(rejection_of(report.communication.rejected, "nvlink.one_sided"),
            "path_not_enabled: ucx.two_sided was asked for (worker@1,worker@2)");
  r.where.communication = "nccl.all_to_all";
  EXPECT_EQ(
      refusal_of(r),
      "carrier_unavailable: carrier nccl.all_to_all cannot run: dep_missing: the worker's build or "
      "machine has no nccl.all_to_all");
  EXPECT_EQ(report_of(r).winner, "");
}

TEST(carriers, have_the_next_in_order_as_fallback) {
  resolution_request r = small_request(gpu_machine());
  r.where.one_process = true;
  const resolution_report report = report_of(r);
  EXPECT_EQ(report.communication.winner, "in_process");
  EXPECT_EQ(report.communication.fallback, "nvlink.one_sided");
}

TEST(carriers, that_run_only_when_asked_for_are_not_taken_by_auto) {
  resolution_request r = small_request(gpu_machine());
  for (auto& w : r.workers) w.seen.carriers = {{"nvlink.low_latency", "ucx.two_sided"}};
  EXPECT_EQ(report_of(r).communication.winner, "ucx.two_sided");
  r.where.communication = "nvlink.low_latency";
  EXPECT_EQ(report_of(r).communication.winner, "nvlink.low_latency");
}

TEST(carriers, must_have_what_the_backend_wants) {
  resolution_request r = small_request();
  std::array fakes{kernels::backend_candidates()[3]};
  ASSERT_EQ(fakes[0].short_name, "cpu_avx2");
  fakes[0].bits.all_gather_only = true;
  r.backends = fakes;
  const std::string text = why(r, k_avx2);
  EXPECT_NE(text.find("capability_missing: no carrier pairs with it"), text.npos) << text;
  EXPECT_NE(text.find("ucx.two_sided capability_missing"), text.npos) << text;
  for (auto& w : r.workers) w.seen.carriers->push_back("ucx.all_gather");
  EXPECT_EQ(report_of(r).communication.winner, "ucx.all_gather");
  r.where.communication = "ucx.two_sided";
  EXPECT_EQ(refusal_of(r),
            "carrier_unavailable: carrier ucx.two_sided cannot run: capability_missing: cpu_avx2 "
            "wants every row on every worker");
}

TEST(uneven_slots, need_both_a_backend_and_a_carrier_that_take_them) {
  resolution_request r = small_request();
  r.what.num_experts = r.where.num_slots = 9;
  EXPECT_EQ(report_of(r).winner, k_avx2);
  std::vector<transport::carrier_candidate> even(transport::carrier_candidates().begin(),
                                                 transport::carrier_candidates().end());
  for (auto& c : even) c.bits.non_uniform_slots = false;
  r.carriers = even;
  EXPECT_EQ(why(r, k_avx2).rfind("slots_not_divisible: no carrier pairs with it", 0), 0u);
}

}  // namespace
}  // namespace moetier::coordinator
