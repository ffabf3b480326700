// Adapters in the coordinator's core: sources may name one only while every live worker has it, and
// every load and drop is answered exactly once.

#include <gtest/gtest.h>

#include "tests/coordinator/core_bench.hpp"

namespace moetier::coordinator {
namespace {

using ids = std::vector<std::uint32_t>;

class adapter_bench : public bench {
 public:
  explicit adapter_bench(std::uint32_t workers = 2) : bench(workers) { options.lora = true; }

  void load(request_token token, const std::string& name, const std::string& path = "/a") {
    step(load_adapter{token, name, path});
  }
  void drop(request_token token, const std::string& name) { step(drop_adapter{token, name}); }
  // "waits", "done" or the error's sentence; a token that is answered twice shows.
  std::string answer_of(request_token token) const {
    std::string found = "waits";
    for (const answer_done& a : all<answer_done>()) {
      if (a.token != token) continue;
      if (found != "waits") return "answered twice";
      found = a.result ? "done" : a.result.error().text;
    }
    return found;
  }
  ids listed() const { return snapshot()->adapters; }
  control::adapter_state state_of(const std::string& name, std::uint32_t id) const {
    return {processes.at(name).hello.incarnation, id, true, ""};
  }
};

TEST(coordinator_adapters, a_load_is_answered_when_every_live_worker_has_it_and_sources_see_it) {
  adapter_bench b;
  b.serve();
  EXPECT_TRUE(b.snapshot()->lora);
  b.processes.at("b").takes_adapters = false;
  const auto before = b.snapshot();
  b.load(1, "red", "/adapters/red");
  ASSERT_EQ(b.heard_by<control::load_adapter>("a").size(), 1u);
  EXPECT_EQ(b.heard_by<control::load_adapter>("b")[0].adapter,
            (control::held_adapter{0, "red", "/adapters/red"}));
  EXPECT_EQ(b.answer_of(1), "waits");
  EXPECT_EQ(b.snapshot(), before);
  EXPECT_EQ(b.view().adapters.at(0).workers, std::vector<std::string>{"a"});
  EXPECT_FALSE(b.view().adapters.at(0).listed);
  b.say("b", b.state_of("b", 0));
  EXPECT_EQ(b.answer_of(1), "done");
  EXPECT_EQ(b.listed(), ids{0});
  EXPECT_TRUE(transport::is_newer(*b.snapshot(), *before));
  b.load(2, "blue", "/adapters/blue");
  b.say("b", b.state_of("b", 1));
  EXPECT_EQ(b.listed(), (ids{0, 1}));
}

TEST(coordinator_adapters, the_same_load_again_changes_nothing_and_another_path_is_refused) {
  adapter_bench b;
  b.serve();
  b.load(1, "red", "/red");
  const auto before = b.snapshot();
  b.load(2, "red", "/red");
  EXPECT_EQ(b.answer_of(2), "done");
  EXPECT_EQ(b.snapshot(), before);
  b.load(3, "red", "/other");
  EXPECT_EQ(b.answer_of(3),
            "the adapter's name is red; allowed: one that is not in use for another path");
  b.load(4, "", "/red");
  EXPECT_EQ(b.answer_of(4),
            "the adapter's name is not a name; allowed: 1 to 64 printable ASCII characters");
  b.load(5, "x", "red");
  EXPECT_EQ(b.answer_of(5),
            "the adapter's path is not an absolute path; allowed: / and at most "
            "1023 more printable ASCII characters");
}

TEST(coordinator_adapters, the_first_refusal_fails_the_load_and_nobody_keeps_it) {
  adapter_bench b;
  b.serve();
  b.processes.at("b").adapter_problem = "weights: x: found no tensor, expected a tensor";
  b.load(1, "red");
  EXPECT_EQ(b.answer_of(1),
            "adapter red is not loaded: worker b: weights: x: found no tensor, "
            "expected a tensor");
  EXPECT_EQ(b.heard_by<control::drop_adapter>("a").size(), 1u);
  EXPECT_TRUE(b.view().adapters.empty());
  EXPECT_EQ(b.listed(), ids{});
  b.processes.at("b").adapter_problem.clear();
  b.load(2, "red");
  EXPECT_EQ(b.answer_of(2), "done");
  EXPECT_EQ(b.listed(), ids{1});  // ids are not reused
}

TEST(coordinator_adapters, a_load_that_a_worker_never_answers_fails_at_its_limit) {
  adapter_bench b;
  b.options.adapter_limit = 3 * k_second;
  b.serve();
  b.processes.at("b").takes_adapters = false;
  b.load(1, "red");
  b.wait(2 * k_second);
  EXPECT_EQ(b.answer_of(1), "waits");
  EXPECT_GT(b.heard_by<control::load_adapter>("b").size(), 1u);  // asked again
  b.wait(2 * k_second);
  EXPECT_EQ(b.answer_of(1), "loading adapter red did not end within 3000 ms");
  EXPECT_TRUE(b.view().adapters.empty());
  b.say("b", b.state_of("b", 0));  // late: it is told to drop it
  EXPECT_EQ(b.heard_by<control::drop_adapter>("b").size(), 2u);
  EXPECT_EQ(b.listed(), ids{});
}

TEST(coordinator_adapters, a_worker_lost_meanwhile_does_not_hold_up_a_load) {
  adapter_bench b;
  b.serve();
  b.processes.at("b").takes_adapters = false;
  b.load(1, "red");
  b.lose_link("b");
  EXPECT_EQ(b.answer_of(1), "done");
  EXPECT_EQ(b.listed(), ids{0});
}

TEST(coordinator_adapters, a_returning_worker_gets_all_of_them_before_it_is_routed_to) {
  adapter_bench b;
  b.serve();
  b.load(1, "red");
  b.lose_link("b");
  EXPECT_FALSE(b.is_live(1));
  b.forget();
  auto& fresh = b.add("b", 22);
  fresh.takes_adapters = false;
  b.connect("b");
  b.wait(5 * k_second);
  EXPECT_FALSE(b.is_live(1));
  EXPECT_EQ(b.listed(), ids{0});
  ASSERT_FALSE(b.heard_by<control::load_adapter>("b").empty());
  b.say("b", b.state_of("b", 0));
  EXPECT_TRUE(b.is_live(1));
  EXPECT_EQ(b.listed(), ids{0});
}

TEST(coordinator_adapters, a_returning_worker_that_cannot_have_one_serves_and_the_id_goes) {
  adapter_bench b;
  b.serve();
  b.load(1, "red");
  b.lose_link("b");
  b.add("b", 22).adapter_problem = "cannot read /a/adapter_config.json: No such file";
  b.connect("b");
  EXPECT_TRUE(b.is_live(1));
  EXPECT_EQ(b.listed(), ids{});
  EXPECT_EQ(b.view().adapters.at(0).problem,
            "worker b: cannot read /a/adapter_config.json: No such file");
  b.load(2, "red");  // asks it again at the next beat, and answers with what it says
  b.wait(k_second);
  EXPECT_EQ(b.answer_of(2),
            "adapter red is not loaded: worker b: cannot read "
            "/a/adapter_config.json: No such file");
  b.processes.at("b").adapter_problem.clear();
  b.wait(11 * k_second);
  EXPECT_EQ(b.listed(), ids{0});
  EXPECT_EQ(b.view().adapters.at(0).workers, (std::vector<std::string>{"a", "b"}));
}

TEST(coordinator_adapters, a_drop_is_published_before_a_worker_is_told) {
  adapter_bench b;
  b.serve();
  b.load(1, "red");
  b.load(2, "blue", "/blue");
  b.forget();
  b.drop(3, "red");
  EXPECT_EQ(b.answer_of(3), "done");
  std::vector<std::string> order;
  for (const effect& e : b.seen) {
    if (const auto* p = std::get_if<publish_snapshot>(&e)) {
      EXPECT_EQ(p->snapshot->adapters, ids{1});
      order.emplace_back("published");
    } else if (const auto* s = std::get_if<send_to_worker>(&e)) {
      if (std::holds_alternative<control::drop_adapter>(s->body)) order.emplace_back("told");
    } else if (std::holds_alternative<answer_done>(e)) {
      order.emplace_back("answered");
    }
  }
  EXPECT_EQ(order, (std::vector<std::string>{"published", "told", "told", "answered"}));
  b.drop(4, "red");
  EXPECT_EQ(b.answer_of(4), "the adapter is red; allowed: blue");
  b.drop(5, "blue");
  b.drop(6, "blue");
  EXPECT_EQ(b.answer_of(6), "the adapter is blue; allowed: none is loaded");
}

TEST(coordinator_adapters, a_drop_waits_for_an_epoch_that_is_being_written) {
  adapter_bench b(3);
  b.start();
  for (const char* name : {"a", "b", "c"}) b.join(name, 11 + static_cast<unsigned>(name[0]), 4);
  b.load(1, "red");
  b.disk_answers = false;
  b.lose_link("c");
  b.forget();
  b.drop(2, "red");
  EXPECT_EQ(b.answer_of(2), "waits");
  EXPECT_TRUE(b.heard_by<control::drop_adapter>("a").empty());
  b.acknowledge();
  EXPECT_EQ(b.answer_of(2), "done");
  EXPECT_EQ(b.listed(), ids{});
  EXPECT_EQ(b.heard_by<control::drop_adapter>("a").size(), 1u);
}

TEST(coordinator_adapters, a_restarted_coordinator_learns_them_from_its_workers) {
  adapter_bench b;
  b.serve();
  b.load(1, "red", "/red");
  b.load(2, "blue", "/blue");
  b.drop(3, "red");
  b.restart();
  b.processes.at("b").hello.adapters.clear();  // it was restarted as well
  b.forget();
  b.connect("a");
  b.connect("b");
  EXPECT_EQ(b.listed(), ids{1});
  EXPECT_EQ(b.view().adapters.at(0).name, "blue");
  ASSERT_EQ(b.heard_by<control::load_adapter>("b").size(), 1u);
  b.load(4, "green", "/green");
  EXPECT_EQ(b.listed(), (ids{1, 2}));
}

TEST(coordinator_adapters, what_a_late_worker_holds_and_nobody_knows_is_dropped_there) {
  adapter_bench b;
  b.serve();
  b.lose_link("b");
  b.processes.at("b").hello.adapters = {{7, "old", "/old"}};
  b.forget();
  b.connect("b");
  ASSERT_EQ(b.heard_by<control::drop_adapter>("b").size(), 1u);
  EXPECT_EQ(b.heard_by<control::drop_adapter>("b")[0].adapter, 7u);
  EXPECT_TRUE(b.view().adapters.empty());
  b.load(1, "red");
  EXPECT_EQ(b.listed(), ids{8});  // not 7, which old calls may still name
}

TEST(coordinator_adapters, a_tier_without_lora_or_without_workers_refuses_with_the_reason) {
  adapter_bench off;
  off.options.lora = false;
  off.serve();
  off.load(1, "red");
  EXPECT_EQ(off.answer_of(1), "lora (moe.lora is off where the plan was made) is not enabled");
  EXPECT_FALSE(off.view().runs_adapters);

  adapter_bench early;
  early.start();
  early.load(1, "red");
  EXPECT_EQ(early.answer_of(1), "the tier is not ready: no plan is in service");

  adapter_bench empty;
  empty.serve();
  empty.lose_link("a");
  empty.lose_link("b");
  empty.load(1, "red");
  EXPECT_EQ(empty.answer_of(1), "the tier is not ready: no worker is in service");
}

TEST(coordinator_adapters, sixty_four_are_taken_and_one_more_is_refused) {
  adapter_bench b;
  b.serve();
  for (request_token t = 1; t <= 64; ++t) b.load(t, fmt::format("n{}", t));
  EXPECT_EQ(b.listed().size(), 64u);
  b.load(65, "n65");
  EXPECT_EQ(b.answer_of(65), "the number of adapters is 65; at most 64");
}

TEST(coordinator_adapters, requests_under_way_are_answered_when_the_coordinator_ends) {
  adapter_bench b;
  b.serve();
  b.processes.at("b").takes_adapters = false;
  b.load(1, "red");
  b.step(shut_down{});
  EXPECT_EQ(b.answer_of(1), "the coordinator is shutting down");
  b.load(2, "blue");
  EXPECT_EQ(b.answer_of(2), "the coordinator is shutting down");
  b.drop(3, "red");
  EXPECT_EQ(b.answer_of(3), "the coordinator is shutting down");
}

}  // namespace
}  // namespace moetier::coordinator
