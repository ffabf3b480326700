// Resolution inside the coordinator's core: once for all workers, moved for all when one fails,
// kept over a restart, explained when nothing can run.

#include <gtest/gtest.h>

#include "coordinator/resolution/resolve.hpp"
#include "coordinator/resolution/tier_request.hpp"
#include "tests/coordinator/core_bench.hpp"

namespace moetier::coordinator {
namespace {

resolution::resolution_report report_in(const control::prepare& p) {
  return *resolution::read_report(
      {reinterpret_cast<const char*>(p.resolution.data()), p.resolution.size()}, "it");
}

std::string reason_not_ready(const bench& b) { return b.view().not_ready_reasons.at(0); }

TEST(coordinator_resolving, every_worker_is_told_the_same_choice_and_rows_carry_its_id) {
  bench b;
  b.serve();
  const auto a = report_in(b.heard_by<control::prepare>("a").at(0));
  EXPECT_EQ(a.winner, "moetier.cpu.avx2.none");
  EXPECT_EQ(a.selected, resolution::selected_by::pinned);
  EXPECT_EQ(b.heard_by<control::prepare>("b").at(0).resolution,
            b.heard_by<control::prepare>("a").at(0).resolution);
  EXPECT_EQ(b.snapshot()->resolution_id, a.resolution_id);
  EXPECT_EQ(b.snapshot()->backend, "moetier.cpu.avx2.none");
  EXPECT_TRUE(b.snapshot()->exact_allowed);
  EXPECT_EQ(b.view().resolved->resolution_id, a.resolution_id);
}

TEST(coordinator_resolving, is_asked_with_the_same_request_as_offline) {
  bench b;
  b.options.quantise = quant_kind::mxfp4;
  b.options.model.hidden_size = b.options.model.intermediate_size = 32;
  b.options.tokens_max = 64;
  b.serve();
  resolution_request offline =
      tier_request(b.options.model, {.quantise = quant_kind::mxfp4, .tokens_max = 64},
                   {{"a", toy::cpu_environment()}, {"b", toy::cpu_environment()}}, {4, 4});
  offline.offline = true;
  offline.epoch = b.view().resolved->epoch;  // a running tier has one
  const auto outcome = weigh(offline);
  ASSERT_TRUE(outcome) << outcome.error().text;
  EXPECT_EQ(readable_json(*b.view().resolved), readable_json(outcome->report));
  EXPECT_EQ(outcome->report.what.quant, quant_kind::mxfp4);
  EXPECT_EQ(outcome->report.what.dtype_act, dtype::f32);
}

TEST(coordinator_resolving, one_failed_preparation_moves_all_workers) {
  bench b;
  b.start();
  b.add("a", 11).loads = false;
  b.add("b", 12).loads = false;
  b.connect("a");
  b.connect("b");
  const auto first = b.heard_by<control::prepare>("b").at(0);
  EXPECT_EQ(report_in(first).winner, "moetier.cpu.avx2.none");
  b.forget();
  b.processes.at("a").loads = b.processes.at("b").loads = true;
  b.say("b", control::refused{control::refused::why::prepare_failed, first.epoch, first.generation,
                              incarnation_id(12), "row 5 column 17 is 3, the reference says 2"});
  EXPECT_TRUE(b.logged("prepare_failed"));
  for (const char* name : {"a", "b"}) {
    const auto again = b.heard_by<control::prepare>(name).at(0);
    EXPECT_GT(again.epoch, first.epoch);
    EXPECT_NE(again.plan, first.plan);
    const auto report = report_in(again);
    EXPECT_EQ(report.winner, "moetier.cpu.ref.none");
    EXPECT_TRUE(report.degraded());
  }
  EXPECT_TRUE(b.view().ready);
  EXPECT_EQ(b.snapshot()->backend, "moetier.cpu.ref.none");
  EXPECT_TRUE(b.logged("degraded"));
}

// A refuses first and moves all; what B says of the same attempt arrives after the next PREPARE.
TEST(coordinator_resolving, a_refusal_of_the_attempt_before_is_not_charged_to_the_next_candidate) {
  bench b;
  b.start();
  b.add("a", 11).loads = false;
  b.add("b", 12).loads = false;
  b.connect("a");
  b.connect("b");
  const auto first = b.heard_by<control::prepare>("a").at(0);
  const auto refuse_first = [&](const char* name) {
    b.say(name, control::refused{control::refused::why::prepare_failed, first.epoch,
                                 first.generation, b.processes.at(name).hello.incarnation,
                                 "row 5 column 17 is 3, the reference says 2"});
  };
  refuse_first("a");
  ASSERT_EQ(b.heard_by<control::prepare>("b").size(), 2u);
  const auto before = b.view().stale_commands_refused;
  refuse_first("b");
  EXPECT_EQ(b.view().stale_commands_refused, before + 1);
  EXPECT_FALSE(b.logged("plan_infeasible"));
  b.processes.at("a").loads = b.processes.at("b").loads = true;
  b.wait(k_second);  // PREPARE is said again
  ASSERT_TRUE(b.view().ready);
  EXPECT_EQ(b.snapshot()->backend, "moetier.cpu.ref.none");
}

// Its failures were its machine's: whoever comes instead is asked anew, without a restart.
TEST(coordinator_resolving, what_failed_on_a_worker_is_forgotten_when_it_goes) {
  for (const char* instead : {"b", "c"}) {
    bench b;
    b.start();
    b.join("a", 11);
    b.add("b", 12).loads = false;
    b.connect("b");
    for (std::size_t tried = 0; b.heard_by<control::prepare>("b").size() > tried; ++tried) {
      const auto p = b.heard_by<control::prepare>("b").back();
      b.say("b", control::refused{control::refused::why::prepare_failed, p.epoch, p.generation,
                                  incarnation_id(12), "its memory is bad"});
    }
    ASSERT_TRUE(b.logged("plan_infeasible")) << "every candidate has failed on b";
    b.lose_link("b");
    b.join(instead, 22);
    ASSERT_TRUE(b.view().ready) << instead << ": " << reason_not_ready(b);
    EXPECT_EQ(b.snapshot()->backend, "moetier.cpu.avx2.none");
  }
}

TEST(coordinator_resolving, degrading_can_be_forbidden_and_says_what_failed) {
  bench b(1);
  b.options.allow_degradation = false;
  b.start();
  auto slow = toy::cpu_environment();
  slow.cpu_avx2 = false;
  b.add("a", 11).hello.environment = toy::environment_document(slow);
  b.connect("a");
  EXPECT_TRUE(b.heard_by<control::prepare>("a").empty());
  EXPECT_TRUE(b.logged("plan_infeasible"));
  EXPECT_NE(reason_not_ready(b).find("degrading is forbidden"), std::string::npos)
      << reason_not_ready(b);
}

TEST(coordinator_resolving, a_forced_choice_that_cannot_run_names_what_it_lacks) {
  bench b(1);
  b.options.backend_force = "cpu_avx2";
  b.start();
  auto slow = toy::cpu_environment();
  slow.cpu_avx2 = false;
  b.add("a", 11).hello.environment = toy::environment_document(slow);
  b.connect("a");
  EXPECT_NE(reason_not_ready(b).find("moetier.cpu.avx2.none: sm_unsupported"), std::string::npos)
      << reason_not_ready(b);
  // Another machine takes the place: it is asked anew.
  b.lose_link("a");
  b.join("a", 21);
  EXPECT_TRUE(b.view().ready);
}

TEST(coordinator_resolving, workers_that_differ_in_a_field_that_must_match_are_named_with_values) {
  bench b;
  b.start();
  b.join("a", 11);
  auto odd = toy::cpu_environment();
  odd.numerics_combine = 2;
  b.add("b", 12).hello.environment = toy::environment_document(odd);
  b.connect("b");
  EXPECT_EQ(reason_not_ready(b), "workers do not agree: numerics_combine is 1 on a, 2 on b");
}

TEST(coordinator_resolving, a_process_that_cannot_run_the_committed_choice_is_not_taken_back) {
  bench b;
  b.serve();
  b.lose_link("b");
  auto slow = toy::cpu_environment();
  slow.cpu_avx2 = false;
  b.add("b", 22).hello.environment = toy::environment_document(slow);
  b.forget();
  b.connect("b");
  const auto refused = b.heard_by<control::refused>("b");
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].cause, control::refused::why::join);
  EXPECT_NE(refused[0].text.find("it cannot run moetier.cpu.avx2.none: sm_unsupported"),
            std::string::npos)
      << refused[0].text;
  b.add("b", 23).hello.environment = {'{'};
  b.forget();
  b.connect("b");
  EXPECT_NE(b.heard_by<control::refused>("b").at(0).text.find("b is malformed"), std::string::npos);
}

TEST(coordinator_resolving, the_choice_outlives_the_coordinator) {
  bench b;
  b.serve();
  const auto id = b.snapshot()->resolution_id;
  b.options.backend_force = "cpu_ref";  // a wish for the next plan, not for this one
  b.restart();
  b.connect("a");
  b.connect("b");
  b.wait(k_second);
  ASSERT_NE(b.snapshot(), nullptr);
  EXPECT_EQ(b.snapshot()->resolution_id, id);
  EXPECT_EQ(b.snapshot()->backend, "moetier.cpu.avx2.none");
}

TEST(coordinator_resolving, a_setting_that_the_committed_plan_outranks_is_said) {
  const auto said = [](auto&& change) {
    bench b;
    b.serve();
    change(b.options);
    b.restart();
    std::string all;
    for (const log_event& e : b.all<log_event>()) {
      if (e.event == "setting_unused") all += e.detail + "\n";
    }
    return all;
  };
  EXPECT_EQ(said([](core_options&) {}), "");
  EXPECT_EQ(said([](core_options& o) { o.backend_force = "cpu_ref"; }),
            "backend.force is CPU_REF, and the plan of the durable record keeps AUTO; a new "
            "coordinator.state_dir starts with the setting\n");
  EXPECT_EQ(said([](core_options& o) { o.quantise = quant_kind::mxfp4; }),
            "model.quantise is mxfp4, and the plan of the durable record keeps none; a new "
            "coordinator.state_dir starts with the setting\n");
}

TEST(coordinator_resolving, shared_experts_are_held_unless_switched_off) {
  for (const bool hold : {true, false}) {
    bench b;
    b.options.model.shared = {.intermediate_size = 16, .count = 2};
    b.options.hold_shared_experts = hold;
    b.serve();
    EXPECT_EQ(b.heard_by<control::prepare>("a").at(0).shared_experts, hold ? 2u : 0u);
    session_request wish;
    wish.shared_experts = true;
    wish.incarnation = incarnation_id(7);
    b.step(open_session{1, wish});
    const auto grant = b.all<answer_session>().back().grant;
    EXPECT_EQ(grant.has_value(), hold);
    if (!hold) {
      EXPECT_EQ(grant.error().text,
                "shared_experts tier (moe.shared_experts of the tier is off) is not enabled");
    }
  }
}

}  // namespace
}  // namespace moetier::coordinator
