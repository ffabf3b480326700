#include "actors/cli/resolve_inputs.hpp"

#include <sstream>

#include <gtest/gtest.h>

#include "actors/cli/resolve_text.hpp"
#include "coordinator/resolution/resolve.hpp"
#include "schemas/file/input_file.hpp"
#include "schemas/model/config.hpp"
#include "schemas/resolution/documents.hpp"
#include "tests/schemas/resolution/small_values.hpp"

namespace moetier::cli {
namespace {

using resolution::environment;

const std::string k_source = MOETIER_SOURCE_DIR;

environment shipped(const std::string& name) {
  const std::string file = k_source + "/deploy/environments/" + name;
  const auto text = input_file::read_text(file, 1 << 20);
  EXPECT_TRUE(text) << file;
  const auto e = resolution::read_environment(text ? *text : "", file);
  EXPECT_TRUE(e) << (e ? "" : e.error().text);
  return e ? *e : environment{};
}

model_description deepseek() {
  const auto m = read_config(k_source + "/tests/data/configs/deepseek_v3/config.json");
  EXPECT_TRUE(m) << (m ? "" : m.error().text);
  return m ? *m : model_description{};
}

coordinator::resolution_request accepted(const resolve_options& o, const model_description& m,
                                         std::vector<environment> environments) {
  auto r = resolve_request(o, {.tokens = 4096}, m, std::move(environments));
  EXPECT_TRUE(r) << (r ? "" : r.error().text);
  return r ? *r : coordinator::resolution_request{};
}

std::string refused(const resolve_options& o, std::size_t environments) {
  const auto r = resolve_request(o, {}, deepseek(), std::vector<environment>(environments));
  return r ? "ok" : r.error().text;
}

TEST(resolve_inputs, fill_the_deployment_from_the_model) {
  const auto r = accepted({.workers = 8}, deepseek(), {resolution::cpu_machine()});
  EXPECT_EQ(r.workers.size(), 8u);
  EXPECT_EQ(r.workers[7].worker, "worker@8");
  EXPECT_EQ(r.where.num_slots, 256u);
  EXPECT_FALSE(r.where.eplb);
  EXPECT_EQ(r.where.moe_layers, 58u);
  EXPECT_EQ(r.where.tokens_max, 4096u);
  EXPECT_EQ(r.what.quant, quant_kind::fp8_block);
  EXPECT_EQ(r.routing.kernel, "grouped");
  EXPECT_TRUE(r.offline);
  EXPECT_TRUE(r.allow_degradation);
}

TEST(resolve_inputs, turn_replicas_on_where_slots_are_to_spare) {
  const std::vector<environment> one{resolution::cpu_machine()};
  EXPECT_TRUE(accepted({.workers = 8, .slots = 36}, deepseek(), one).where.eplb);
  EXPECT_EQ(accepted({.workers = 8, .slots = 36}, deepseek(), one).where.num_slots, 288u);
  EXPECT_FALSE(accepted({.workers = 8, .slots = 32}, deepseek(), one).where.eplb);
  EXPECT_TRUE(accepted({.workers = 8, .slots = 32, .eplb = true}, deepseek(), one).where.eplb);
}

TEST(resolve_inputs, take_forced_parts_and_refuse_others) {
  const auto r = accepted({.return_mode = "exact",
                           .forced = {"backend=cpu_ref", "communication=ucx.two_sided"},
                           .no_degradation = true},
                          deepseek(), {resolution::cpu_machine()});
  EXPECT_EQ(r.backend, "cpu_ref");
  EXPECT_EQ(r.where.communication, "ucx.two_sided");
  EXPECT_EQ(r.what.return_mode, resolution::answer_mode::exact);
  EXPECT_FALSE(r.allow_degradation);
  for (const char* pair : {"backend", "backend=", "scheduler=x", "=x", ""}) {
    EXPECT_EQ(refused({.forced = {pair}}, 1), "setting --force is " + std::string(pair) +
                                                  "; allowed: backend=NAME, communication=NAME");
  }
}

TEST(resolve_inputs, take_each_forced_part_once) {
  EXPECT_EQ(refused({.forced = {"backend=cpu", "communication=ucx", "backend=cpu_ref"}}, 1),
            "setting --force is backend=cpu and backend=cpu_ref; allowed: each part once");
}

TEST(resolve_inputs, follow_the_settings_as_a_tier_would) {
  model_description plain = deepseek();
  plain.format = {};
  const auto with = [&](const resolve_options& o) {
    const auto r = resolve_request(o,
                                   {.backend = "cpu_ref",
                                    .carrier = "ucx",
                                    .tokens = 7,
                                    .workers = 4,
                                    .slots = 70,
                                    .allow_degradation = false,
                                    .quantise = quant_kind::mxfp4},
                                   plain, {resolution::cpu_machine()});
    EXPECT_TRUE(r) << (r ? "" : r.error().text);
    return r ? *r : coordinator::resolution_request{};
  };
  const auto r = with({});
  EXPECT_EQ(r.backend, "cpu_ref");
  EXPECT_EQ(r.where.communication, "ucx");
  EXPECT_EQ(r.where.tokens_max, 7u);
  EXPECT_EQ(r.where.slots_per_worker, (std::vector<std::uint32_t>{70, 70, 70, 70}));
  EXPECT_TRUE(r.where.eplb);
  EXPECT_FALSE(r.allow_degradation);
  EXPECT_EQ(r.what.quant, quant_kind::mxfp4);
  EXPECT_EQ(with({.workers = 3, .slots = 90}).where.num_slots, 270u);
}

TEST(resolve_inputs, want_one_environment_or_one_each) {
  EXPECT_EQ(refused({.workers = 3}, 3), "ok");
  EXPECT_EQ(refused({}, 2), "ok");
  EXPECT_EQ(refused({.workers = 3}, 2),
            "setting --environment is given 2 times; allowed: once, or once for each of 3 workers");
}

TEST(shipped_environments, explain_deepseek_v3) {
  auto cpu = coordinator::weigh(accepted({.workers = 8}, deepseek(), {shipped("cpu_avx2.json")}));
  ASSERT_TRUE(cpu) << cpu.error().text;
  EXPECT_FALSE(cpu->refusal) << cpu->refusal->text;
  EXPECT_EQ(cpu->report.winner, "moetier.cpu.avx2.fp8_block");
  EXPECT_EQ(cpu->report.communication.winner, "ucx.two_sided");
  const auto gpu = coordinator::weigh(accepted({.workers = 8}, deepseek(), {shipped("h200.json")}));
  ASSERT_TRUE(gpu) << gpu.error().text;
  EXPECT_EQ(gpu->report.winner, "moetier.cuda.sm90_fp8.fp8_block");
  EXPECT_EQ(gpu->report.combine_dtype, dtype::f32);
  const std::string text = describe_rejections(gpu->report);
  EXPECT_NE(text.find("sm90_bf16.fp8_block: quant_unsupported"), text.npos) << text;
  model_description odd = deepseek();
  odd.hidden_size = 7200;
  const auto far = coordinator::weigh(accepted({.workers = 8}, odd, {shipped("h200.json")}));
  EXPECT_NE(describe_rejections(far->report)
                .find("sm90_fp8.fp8_block: shape_unaligned: hidden size 7200 is no multiple of "
                      "128; the nearest is 7168"),
            std::string::npos);
}

TEST(resolve_text, shows_each_candidate_with_its_answer) {
  const auto outcome =
      coordinator::weigh(accepted({.workers = 8}, deepseek(), {shipped("cpu_avx2.json")}));
  ASSERT_TRUE(outcome);
  const std::string text = resolve_text(outcome->report, "deepseek_v3");
  EXPECT_EQ(text.rfind("deepseek_v3: 256 experts, 8 a token, H 7168, I 2048, fp8_block weights, "
                       "deepseek_v3 routing\n8 workers, 256 slots per layer, 58 MoE layers, 4096 "
                       "tokens a call\n",
                       0),
            0u)
      << text;
  for (const auto& c : kernels::backend_candidates())
    EXPECT_NE(text.find(identity_of(c, quant_kind::fp8_block)), text.npos) << c.short_name;
  for (const auto& c : transport::carrier_candidates())
    EXPECT_NE(text.find(c.name), text.npos) << c.name;
}

// The words of a table's row, one space between them.
std::string row_of(const std::string& text, const std::string& first) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(first + " ", 0) != 0) continue;
    std::istringstream words(line);
    std::string row;
    for (std::string word; words >> word;) row += (row.empty() ? "" : " ") + word;
    return row;
  }
  return {};
}

TEST(resolve_text, says_that_a_carrier_runs_only_where_a_backend_does) {
  resolve_options o{.workers = 8};
  const auto ran = coordinator::weigh(accepted(o, deepseek(), {shipped("cpu_avx2.json")}));
  ASSERT_TRUE(ran);
  EXPECT_EQ(row_of(resolve_text(ran->report, "m"), "ucx.two_sided"), "ucx.two_sided runs");
  o.forced = {"backend=sm90_fp8"};
  const auto failed = coordinator::weigh(accepted(o, deepseek(), {shipped("cpu_avx2.json")}));
  ASSERT_TRUE(failed);
  EXPECT_TRUE(failed->refusal);
  EXPECT_EQ(row_of(resolve_text(failed->report, "m"), "ucx.two_sided"), "ucx.two_sided eligible");
}

TEST(resolve_text, calls_a_choice_undecided_while_something_is_possible) {
  environment unknown = shipped("cpu_avx2.json");
  unknown.kernels.reset();
  const auto outcome = coordinator::weigh(accepted({.workers = 8}, deepseek(), {unknown}));
  ASSERT_TRUE(outcome);
  EXPECT_FALSE(outcome->refusal);
  EXPECT_NE(resolve_text(outcome->report, "m").find("backend AUTO undecided: "), std::string::npos);
  const auto forced = coordinator::weigh(
      accepted({.workers = 8, .forced = {"backend=sm90_fp8"}}, deepseek(), {unknown}));
  ASSERT_TRUE(forced);
  EXPECT_NE(resolve_text(forced->report, "m").find("backend SM90_FP8 failed: "), std::string::npos);
}

}  // namespace
}  // namespace moetier::cli
