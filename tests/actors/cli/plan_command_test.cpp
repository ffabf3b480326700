// `moetier plan` as a user runs it: files in, table or JSON and files out, errors with their place.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

#include <sys/stat.h>

#include "actors/cli/command_line.hpp"
#include "actors/cli/commands.hpp"
#include "actors/cli/plan_advice.hpp"
#include "actors/cli/plan_stats.hpp"
#include "eplb/plan_file.hpp"
#include "schemas/safetensors/tensor_writer.hpp"

namespace moetier::cli {
namespace {

struct outcome {
  int code = 0;
  std::string out;
  std::string error;
};

class plan_command : public testing::Test {
 protected:
  plan_command() : folder_(std::filesystem::path(testing::TempDir()) / "plan_command_test" / "") {
    std::filesystem::create_directories(folder_);
  }
  ~plan_command() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + name; }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  static std::string text_of(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  static outcome run(std::vector<std::string> words) {
    std::vector<const char*> argv{"moetier", "plan"};
    for (const std::string& w : words) argv.push_back(w.c_str());
    testing::internal::CaptureStdout();
    const auto parsed = parse_command_line(static_cast<int>(argv.size()), argv.data());
    outcome o;
    if (const auto* line = std::get_if<command_line>(&parsed)) {
      const auto code = run_plan(*line);
      o.code = static_cast<int>(code ? *code : exit_code_of(code.error()));
      if (!code) o.error = code.error().text;
    } else {
      o.code = static_cast<int>(std::get<exit_code>(parsed));
    }
    std::fflush(stdout);
    o.out = testing::internal::GetCapturedStdout();
    return o;
  }

  std::string loads(const std::string& name = "loads.csv",
                    const std::string& rows = "0,120,30,30,10,5,5\n1,10,10,80,70,20,10\n") const {
    return file(name, "layer,e0,e1,e2,e3,e4,e5\n" + rows);
  }

 private:
  std::string folder_;
};

TEST_F(plan_command, writes_a_plan_that_reads_back_and_shows_its_gain) {
  const outcome o = run({"--counts", loads(), "--workers", "2", "--out", path("p.json")});
  ASSERT_EQ(o.code, 0) << o.error;
  EXPECT_NE(o.out.find("    0   0.5556  1.0000  100.0        100.00  window_wrap"),
            std::string::npos)
      << o.out;
  EXPECT_NE(o.out.find("serve it with: moetier up --model DIR --placement"), std::string::npos);
  const auto plan = eplb::read_plan_file(text_of(path("p.json")), "p.json");
  ASSERT_TRUE(plan.has_value()) << plan.error().text;
  EXPECT_EQ(plan->draft.slots_per_worker, (std::vector<std::uint32_t>{4, 4}));
}

TEST_F(plan_command, prints_one_json_document) {
  const outcome o = run({"--counts", loads(), "--workers", "2", "-o", "json"});
  const auto d = nlohmann::json::parse(o.out);
  EXPECT_EQ(d["schema"], "moetier.plan/1");
  EXPECT_EQ(d["layers"].size(), 2U);
  EXPECT_NEAR(d["layers"][0]["balancedness_without"].get<double>(), 100.0 / 180, 1e-9);
  EXPECT_GT(d["percent_of_optimal"]["worst"].get<double>(), 99.9);
}

TEST_F(plan_command, says_what_few_slots_allow) {
  // The hottest expert shares its worker with the lightest: 120 + 5 over a bound of 120.
  const std::string few = loads("few.csv", "0,120,30,30,10,5,5\n");
  const outcome o = run({"--counts", few, "--workers", "3", "--slots", "6"});
  EXPECT_NE(o.out.find("96.00 % of the bound, worst layer 96.00 %\n"
                       "  100.00 % of what so few slots allow, worst layer 100.00 %"),
            std::string::npos)
      << o.out;
  const auto d = nlohmann::json::parse(
      run({"--counts", few, "--workers", "3", "--slots", "6", "-o", "json"}).out);
  EXPECT_NEAR(d["layers"][0]["starved_bound"].get<double>(), 125, 1e-6);
  const outcome enough = run({"--counts", few, "--workers", "3", "--slots", "9"});
  EXPECT_NE(enough.out.find("of what any placement could reach"), std::string::npos);
}

TEST_F(plan_command, repairs_an_old_plan_within_its_budget) {
  ASSERT_EQ(run({"--counts", loads(), "--workers", "3", "--out", path("p.json")}).code, 0);
  const std::string other = loads("other.csv", "0,5,5,10,30,30,120\n1,80,70,10,10,10,20\n");
  std::vector<std::uint64_t> copies;
  for (const char* budget : {"0", "1", "8"}) {
    const outcome o = run({"--counts", other, "--from", path("p.json"), "--budget", budget, "--out",
                           path("q.json"), "-o", "json"});
    ASSERT_EQ(o.code, 0) << o.error;
    const auto d = nlohmann::json::parse(o.out);
    copies.push_back(d["copies"]);
    const auto q = eplb::read_plan_file(text_of(path("q.json")), "q.json");
    EXPECT_EQ(q->moves.size(), copies.back());
  }
  EXPECT_EQ(copies[0], 0U);
  EXPECT_LE(copies[1], 2U);  // one a layer
  EXPECT_GE(copies[2], copies[1]);
  // In bytes over all layers: one expert fits.
  std::vector<std::string> in_bytes{"--counts", other,   "--from",        path("p.json"),
                                    "--budget", "15MiB", "--expert-size", "10MiB"};
  const outcome text = run(in_bytes);
  EXPECT_NE(text.out.find("10485760 bytes, 10485760 by nvlink; about 0.0699 ms\n"),
            std::string::npos)
      << text.out;
  in_bytes.insert(in_bytes.end(), {"-o", "json"});
  const outcome o = run(in_bytes);
  const auto d = nlohmann::json::parse(o.out);
  EXPECT_EQ(d["copies"], 1);
  EXPECT_EQ(d["bytes"]["nvlink"].get<std::uint64_t>(), d["copies"].get<std::uint64_t>() * 10485760);
}

TEST_F(plan_command, goes_through_the_other_engines_file_and_back) {
  ASSERT_EQ(run({"--counts", loads(), "--workers", "2", "--out", path("p.json")}).code, 0);
  outcome o = run({"--from", path("p.json"), "--export", path("t.json")});
  ASSERT_EQ(o.code, 0) << o.error;
  EXPECT_NE(o.out.find("it has no word for shares: they are lost"), std::string::npos) << o.out;
  EXPECT_TRUE(o.out.ends_with("no plan file is written without --out FILE\n")) << o.out;
  EXPECT_EQ(
      run({"--from", path("t.json"), "--out", path("q.json")}).error,
      "setting --workers is not given; allowed: a number: assignments do not say how many workers "
      "there are");
  o = run({"--from", path("t.json"), "--workers", "2", "--out", path("q.json")});
  ASSERT_EQ(o.code, 0) << o.error;
  const auto p = eplb::read_plan_file(text_of(path("p.json")), "p.json");
  const auto q = eplb::read_plan_file(text_of(path("q.json")), "q.json");
  EXPECT_EQ(p->draft.layers[1].slots, q->draft.layers[1].slots);
}

TEST_F(plan_command, says_what_lacks) {
  EXPECT_EQ(run({}).error,
            "setting --counts is not given; allowed: a file of loads; or --trace, or --from to "
            "convert a plan");
  EXPECT_EQ(run({"--counts", loads()}).error,
            "setting --workers is not given; allowed: how many workers to plan for");
  const outcome o = run({"--counts", loads(), "--workers", "4", "--slots", "5"});
  EXPECT_EQ(o.code, 4);
  EXPECT_EQ(o.error,
            "6 experts cannot be divided over 4 workers: --slots 5 over all workers are too few; "
            "at least 6 "
            "are needed, 12 give every worker the same number and one to spare");
  EXPECT_EQ(run({"--counts", path("none.csv"), "--workers", "2"}).code, 7);
  EXPECT_EQ(run({"--counts", loads(), "--workers", "2", "--out", path("no/p.json")}).code, 7);
  EXPECT_EQ(run({"--counts", loads(), "--slots-per-worker", "4,4", "--workers", "3"}).error,
            "setting --slots-per-worker is 2 numbers; allowed: 3, one a worker");
  ASSERT_EQ(run({"--counts", loads(), "--workers", "2", "--out", path("p.json")}).code, 0);
  const outcome other = run({"--counts", loads(), "--from", path("p.json"), "--workers", "3"});
  EXPECT_EQ(other.code, 4);
  EXPECT_TRUE(
      other.error.ends_with("p.json is for 2 worker(s) with 8 slots per layer, not for 3 "
                            "with 9; leave --from out to plan anew"))
      << other.error;
  EXPECT_NE(run({"--counts", loads(), "--from", path("p.json"), "--slots-per-worker", "5,3"})
                .error.find("not for 2 with 8 in other numbers"),
            std::string::npos);
  EXPECT_EQ(run({"--counts", loads(), "--from", path("p.json"), "--budget", "1GiB"}).error,
            "setting --expert-size is not given; allowed: a size, as the budget is in bytes");
  EXPECT_EQ(run({"--counts", loads(), "--from", path("p.json"), "--budget", "much"}).code, 2);
}

TEST_F(plan_command, loads_of_nothing_win_nothing) {
  const std::string idle = loads("idle.csv", "0,0,0,0,0,0,0\n");
  const outcome o = run({"--counts", idle, "--workers", "2"});
  EXPECT_NE(o.out.find("no layer has load: any placement is as good\n"), std::string::npos)
      << o.out;
  EXPECT_EQ(o.out.find("% of what any"), std::string::npos) << o.out;
  const auto d = nlohmann::json::parse(run({"--counts", idle, "--workers", "2", "-o", "json"}).out);
  EXPECT_EQ(d["percent_of_optimal"]["mean"], 100);
}

TEST_F(plan_command, refuses_flags_that_would_do_nothing) {
  const auto plan = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"--counts", loads(), "--workers", "2"};
    words.insert(words.end(), more.begin(), more.end());
    const outcome o = run(words);
    EXPECT_EQ(o.code, 2);
    return o.error;
  };
  EXPECT_EQ(plan({"--budget", "4"}), "setting --budget is 4; allowed: only with --from and loads");
  EXPECT_EQ(plan({"--expert-size", "44MiB"}),
            "setting --expert-size is 44MiB; allowed: only with --from and loads");
  ASSERT_EQ(run({"--counts", loads(), "--workers", "2", "--out", path("p.json")}).code, 0);
  EXPECT_EQ(run({"--from", path("p.json"), "--budget", "4"}).code, 2);
  EXPECT_EQ(plan({"--axes", "layer,expert"}),
            "setting --axes is layer,expert; allowed: only with safetensors; this is CSV");
  EXPECT_EQ(plan({"--prefix", "code."}),
            "setting --prefix is code.; allowed: only with safetensors; this is CSV");
  EXPECT_TRUE(plan({"--advise"}).ends_with("not beside --advise, which plans nothing"));
  EXPECT_EQ(run({"--advise", "--out", "p.json"}).error,
            "setting --out is p.json; allowed: not beside --advise, which plans nothing");
}

TEST_F(plan_command, takes_the_experts_of_a_trace_from_the_plan_before) {
  ASSERT_EQ(run({"--counts", loads(), "--workers", "2", "--out", path("p.json")}).code, 0);
  const std::vector<std::int32_t> ids{0, 1, 2, 3, 4, 5, 0, 1};
  const std::string trace = path("trace.safetensors");
  std::vector<tensor_to_write> tensors;
  for (const char* name : {"layer0", "layer1"})
    tensors.push_back({name, dtype::i32, {4, 2}, std::as_bytes(std::span(ids))});
  ASSERT_TRUE(write_tensors(trace, tensors, {}).has_value());
  EXPECT_EQ(run({"--trace", trace, "--workers", "2"}).code, 2);  // nothing says how many there are
  EXPECT_EQ(run({"--trace", trace, "--workers", "2", "--axes", "layer,expert"}).error,
            "setting --axes is layer,expert; allowed: only with --counts");
  const outcome o = run({"--trace", trace, "--from", path("p.json"), "-o", "json"});
  ASSERT_EQ(o.code, 0) << o.error;
  EXPECT_EQ(nlohmann::json::parse(o.out)["experts"], 6);
}

TEST_F(plan_command, tells_a_plan_from_loads) {
  ASSERT_EQ(run({"--counts", loads(), "--workers", "2", "--out", path("p.json")}).code, 0);
  const outcome counts = run({"--counts", path("p.json"), "--workers", "2"});
  EXPECT_EQ(counts.code, 7);
  EXPECT_TRUE(
      counts.error.ends_with("it is neither CSV with the head layer,e0,e1,... nor safetensors"))
      << counts.error;
  EXPECT_EQ(run({"--counts", file("short.txt", "1,2"), "--workers", "2"}).code, 7);
  const outcome from = run({"--counts", loads(), "--from", loads("from.csv")});
  EXPECT_EQ(from.code, 7);
  EXPECT_TRUE(from.error.ends_with(
      "it is no plan file, which is one JSON object; loads go to --counts or --trace"))
      << from.error;
}

TEST_F(plan_command, knows_csv_by_its_head_whatever_the_name) {
  EXPECT_EQ(run({"--counts", loads("loads.txt"), "--workers", "2"}).code, 0);
  EXPECT_NE(run({"--trace", loads(), "--workers", "2"}).error.find("counts as CSV go to --counts"),
            std::string::npos);
}

TEST_F(plan_command, says_how_many_slots_stay_empty) {
  const outcome o = run({"--counts", loads(), "--workers", "2", "--slots", "100"});
  EXPECT_NE(o.out.find("note: 176 slot(s) stay empty"), std::string::npos) << o.out;
}

TEST_F(plan_command, plans_uneven_workers) {
  const outcome o =
      run({"--counts", loads(), "--slots-per-worker", "5,2,2", "--out", path("p.json")});
  ASSERT_EQ(o.code, 0) << o.error;
  EXPECT_EQ(eplb::read_plan_file(text_of(path("p.json")), "p.json")->draft.slots_per_worker,
            (std::vector<std::uint32_t>{5, 2, 2}));
}

TEST_F(plan_command, tells_how_many_wishes_go_unmet) {
  const outcome o = run({"--counts", loads(), "--workers", "2", "--min-replicas", "2"});
  EXPECT_NE(o.out.find("expert(s), all layers counted, have fewer than 2 replicas\n"),
            std::string::npos)
      << o.out;
  EXPECT_EQ(run({"--counts", loads(), "--workers", "2", "--slots", "12", "--min-replicas", "2"})
                .out.find("unmet: "),
            std::string::npos);
}

TEST_F(plan_command, never_replaces_what_is_no_regular_file) {
  std::filesystem::create_symlink(path("target.json"), path("link.json"));
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  for (const char* flag : {"--out", "--export"}) {
    for (const char* name : {"link.json", "pipe"}) {
      const outcome o = run({"--counts", loads(), "--workers", "2", flag, path(name)});
      EXPECT_EQ(o.code, 7);
      EXPECT_EQ(o.error, "cannot write " + path(name) + ": it exists and is no regular file");
    }
  }
  EXPECT_TRUE(std::filesystem::is_symlink(path("link.json")));
  EXPECT_TRUE(std::filesystem::is_fifo(path("pipe")));
  const outcome folder = run({"--counts", loads(), "--workers", "2", "--out", path("")});
  EXPECT_EQ(folder.error, "cannot write " + path("") + ": it is a directory");
}

TEST_F(plan_command, a_file_beside_the_written_one_stays) {
  file("p.json.part", "mine");
  ASSERT_EQ(run({"--counts", loads(), "--workers", "2", "--out", path("p.json")}).code, 0);
  EXPECT_EQ(text_of(path("p.json.part")), "mine");
}

TEST_F(plan_command, never_writes_over_its_own_inputs_or_outputs) {
  const outcome twice = run({"--counts", loads(), "--workers", "2", "--out", path("p.json"),
                             "--export", path("./p.json")});
  EXPECT_EQ(twice.error,
            "setting --export is " + path("./p.json") + "; allowed: another file than --out's");
  EXPECT_FALSE(std::filesystem::exists(path("p.json")));
  const outcome over = run({"--counts", loads(), "--workers", "2", "--out", path("loads.csv")});
  EXPECT_EQ(over.code, 2);
  EXPECT_EQ(over.error,
            "setting --out is " + path("loads.csv") + "; allowed: another file than the loads'");
  EXPECT_TRUE(text_of(path("loads.csv")).starts_with("layer,e0"));
  // A plan may follow itself.
  ASSERT_EQ(run({"--counts", loads(), "--workers", "2", "--out", path("p.json")}).code, 0);
  EXPECT_EQ(run({"--counts", loads(), "--from", path("p.json"), "--out", path("p.json")}).code, 0);
}

TEST_F(plan_command, names_that_are_no_text_do_not_stop_the_document) {
  const outcome o =
      run({"--counts", loads(), "--workers", "2", "--out", path("\xff.json"), "-o", "json"});
  ASSERT_EQ(o.code, 0) << o.error;
  EXPECT_EQ(nlohmann::json::parse(o.out)["out"], path("\xef\xbf\xbd.json"));
}

TEST_F(plan_command, refuses_numbers_that_mean_nothing) {
  const std::string l = loads();
  EXPECT_EQ(run({"--counts", l, "--workers", "2", "--nodes", "3"}).error,
            "setting --nodes is 3; allowed: 1 to 2, the number of workers");
  ASSERT_EQ(run({"--counts", l, "--workers", "2", "--out", path("p.json")}).code, 0);
  for (const auto& [size, code] : {std::pair("256GiB", 0), {"257GiB", 2}})
    EXPECT_EQ(run({"--counts", l, "--from", path("p.json"), "--expert-size", size}).code, code);
  for (const char* nic : {"nan", "inf", "0", "1e300"}) {
    const outcome o = run({"--advise", "--ta", "1us", "--te", "1us", "--tc", "1us", "--tpot", "1ms",
                           "--layers", "1", "--hidden-size", "1", "--top-k", "1", "--nic", nic});
    EXPECT_EQ(o.code, 2) << nic;
    EXPECT_NE(o.error.find("allowed: a number from 0.001 to 1000000"), std::string::npos);
  }
}

TEST_F(plan_command, loads_beyond_the_limit_are_refused_in_repair_too) {
  ASSERT_EQ(run({"--counts", loads(), "--workers", "2", "--out", path("p.json")}).code, 0);
  const std::string huge = loads("huge.csv", "0,18446744073709551615,1,1,1,1,1\n1,1,1,1,1,1,1\n");
  const outcome o = run({"--counts", huge, "--from", path("p.json")});
  EXPECT_EQ(o.code, 4);
  EXPECT_NE(
      o.error.find("has load 18446744073709551615; at most 4611686018427387903 over 2 workers"),
      std::string::npos)
      << o.error;
}

TEST(plan_stats, takes_means_of_a_calls_parts) {
  const std::string page =
      "# TYPE moetier_source_round_trip_seconds histogram\n"
      "moetier_source_round_trip_seconds_count{part=\"wire\"} 4\n"
      "moetier_source_round_trip_seconds_sum{part=\"wire\"} 0.0008\n"
      "moetier_source_round_trip_seconds_count{part=\"wait\"} 4\n"
      "moetier_source_round_trip_seconds_sum{part=\"wait\"} 0.0006\n";
  const auto t = times_in(page);
  ASSERT_TRUE(t.has_value()) << t.error().text;
  EXPECT_NEAR(t->experts_us, 150, 1e-9);
  EXPECT_NEAR(t->leg_us, 100, 1e-9);
  EXPECT_EQ(times_in("# HELP other\n").error().text,
            "setting --from-stats is a page without moetier's source figures; allowed: a "
            "coordinator's /metrics, with gateway.enabled");
  std::string idle = page;
  for (std::size_t at = 0; (at = idle.find("} 4\n", at)) != std::string::npos;) idle[at + 2] = '0';
  EXPECT_EQ(times_in(idle).error().text, "the tier is not ready: no thin client has called it yet");
  EXPECT_EQ(times_of_tier("http://nowhere").error().text,
            "setting --from-stats is 'http://nowhere'; allowed: a coordinator's HTTP address, as "
            "http://127.0.0.1:7402");
}

TEST_F(plan_command, advice_says_when_the_tier_is_not_there) {
  const outcome o = run({"--advise", "--ta", "1us", "--from-stats", "http://127.0.0.1:1"});
  EXPECT_EQ(o.code, 3) << o.error;
}

TEST(plan_advice, follows_times_and_network) {
  advise_options o{.attention_us = 150,
                   .experts_us = 100,
                   .leg_us = 57,
                   .tpot_ms = 50,
                   .layers = 58,
                   .hidden_size = 7168,
                   .top_k = 8};
  auto a = advise(o);
  ASSERT_TRUE(a.has_value());
  EXPECT_FALSE(a->colocated);
  EXPECT_EQ(a->micro_batches, 3U);
  EXPECT_NEAR(a->ratio, 1.5, 1e-9);
  EXPECT_NEAR(a->ratio_network, 2.6, 0.05);
  o.tpot_ms = 15;
  EXPECT_TRUE(advise(o)->colocated);  // both ways do not fit
  o.tpot_ms = 50;
  o.leg_us = 250;
  EXPECT_EQ(advise(o)->why, "it would take 5 micro-batches to hide the way; at most 4 pay");
  o.leg_us = 57;
  o.tokens = 1024;
  EXPECT_EQ(advise(o)->why, "a worker's network serves 0.33 attention GPUs, less than one");
  o.top_k = 0;
  EXPECT_EQ(advise(o).error().text,
            "setting --top-k is not given; allowed: a number above 0; --model tells it too");
  o.leg_us = 0;
  EXPECT_EQ(advise(o).error().text, "setting --tc is not given; allowed: a duration, as 150us");
}

}  // namespace
}  // namespace moetier::cli
