// Tenants: what one may have, and that nobody else notices when it wants more.

#include "coordinator/core/tenants.hpp"

#include <gtest/gtest.h>

#include "tests/coordinator/core_bench.hpp"

namespace moetier::coordinator {
namespace {

tenant_limits limits_of(std::string match) {
  tenant_limits t;
  t.match = std::move(match);
  return t;
}

session_request from(std::string tenant) {
  session_request r;
  r.tenant = std::move(tenant);
  r.tokens_max = 100;
  return r;
}

struct tenants_bench : bench {
  explicit tenants_bench(tenant_list list, std::uint64_t bank_bytes_max = 1 << 30) {
    options.bank_bytes_max = bank_bytes_max;
    options.tenants = std::move(list);
    options.model_names = {"demo", "000000000000f00d"};
    serve();
  }
  error refusal(const session_request& r) {
    step(open_session{99, r});
    const auto answer = all<answer_session>().back();
    return answer.grant ? error{status::ok, reason::none, "granted"} : answer.grant.error();
  }
};

TEST(tenants, an_own_entry_goes_before_that_of_every_name) {
  const tenant_list list{limits_of("*"), limits_of("blue")};
  EXPECT_EQ(find_tenant(list, "blue"), &list[1]);
  EXPECT_EQ(find_tenant(list, "red"), &list[0]);
  EXPECT_EQ(find_tenant({limits_of("blue")}, "red"), nullptr);
}

TEST(tenants, one_that_is_not_configured_is_denied) {
  tenants_bench b({limits_of("blue")});
  const error e = b.refusal(from("red"));
  EXPECT_EQ(e.code, status::denied);
  EXPECT_EQ(e.text, "tenant red is denied: the tier serves the tenants of its configuration alone");
  EXPECT_EQ(b.refusal(from("blue")).code, status::ok);
  EXPECT_EQ(b.view().refused.denied, 1u);
}

TEST(tenants, a_class_above_the_highest_is_denied_and_none_means_the_highest) {
  tenant_limits t = limits_of("*");
  t.highest = deadline_class::prefill;
  tenants_bench b({t});
  session_request r = from("red");
  r.urgency = deadline_class::decode;
  EXPECT_EQ(b.refusal(r).text,
            "deadline class decode is denied: the highest of tenant red is prefill");
  r.urgency = deadline_class::batch;
  EXPECT_EQ(b.open(2, r).urgency, deadline_class::batch);
  EXPECT_EQ(b.open(2, r).call_deadline, b.options.step_deadline);
  const session_grant g = b.open(3, from("red"));
  EXPECT_EQ(g.urgency, deadline_class::prefill);
  EXPECT_EQ(g.call_deadline, b.options.prefill_deadline);
}

TEST(tenants, sessions_beyond_its_number_wait_and_leave_others_alone) {
  tenant_limits t = limits_of("blue");
  t.sessions = 2;
  tenants_bench b({t, limits_of("*")});
  b.open(1, from("blue"));
  const session_grant second = b.open(2, from("blue"));
  const error e = b.refusal(from("blue"));
  EXPECT_EQ(e.code, status::overloaded);
  EXPECT_EQ(e.text, "no credit: tenant blue has 2 of 2 sessions open");
  EXPECT_GT(e.retry_after_ns, 0u);
  EXPECT_EQ(b.refusal(from("red")).code, status::ok);
  b.step(close_session{4, second.session, incarnation_id(7002)});
  EXPECT_EQ(b.refusal(from("blue")).code, status::ok);
  EXPECT_EQ(b.view().refused.overloaded, 1u);
}

TEST(tenants, tokens_in_flight_are_those_of_all_its_sessions_together) {
  tenant_limits t = limits_of("*");
  t.tokens_in_flight = 500;
  tenants_bench b({t});
  session_request r = from("red");
  r.micro_batches = 4;  // 400 tokens
  b.open(1, r);
  const error full = b.refusal(r);
  EXPECT_EQ(full.code, status::overloaded);
  EXPECT_EQ(full.text,
            "no credit: tenant red holds 400 tokens in flight and asks for 400 more; it may have "
            "500");
  EXPECT_EQ(b.refusal(from("red")).code, status::ok);  // 100
  EXPECT_EQ(b.refusal(from("green")).code, status::ok);
  r.tokens_max = 126;
  const error never = b.refusal(r);
  EXPECT_EQ(never.code, status::denied);
  EXPECT_EQ(never.text, "a session of 504 tokens in flight is denied: tenant red may have 500");
}

TEST(tenants, a_model_that_is_not_on_its_list_is_denied) {
  tenant_limits t = limits_of("blue");
  t.models = {"large"};
  tenant_limits by_name = limits_of("green");
  by_name.models = {"demo"};
  tenant_limits by_number = limits_of("red");
  by_number.models = {"other", "000000000000f00d"};
  tenants_bench b({t, by_name, by_number});
  EXPECT_EQ(b.refusal(from("blue")).text,
            "model demo is denied: it is not among the 1 of tenant blue");
  EXPECT_EQ(b.refusal(from("green")).code, status::ok);
  EXPECT_EQ(b.refusal(from("red")).code, status::ok);
}

TEST(tenants, a_rate_is_shared_by_its_sessions) {
  tenant_limits t = limits_of("*");
  t.tokens_per_second = 1000;
  tenants_bench b({t});
  EXPECT_EQ(b.open(1, from("red")).tokens_per_second, 1000u);
  EXPECT_EQ(b.open(2, from("red")).tokens_per_second, 500u);
  EXPECT_EQ(b.open(3, from("blue")).tokens_per_second, 1000u);
  for (const session_view& s : b.view().sessions) {
    EXPECT_EQ(s.tokens_per_second, s.tenant == "red" ? 500u : 1000u);
  }
}

TEST(tenants, workers_are_told_weight_and_class) {
  tenant_limits t = limits_of("*");
  t.weight = 7;
  t.highest = deadline_class::prefill;
  tenants_bench b({t});
  b.forget();
  b.step(b.attach_of(b.open(1, from("red")), 2));
  const auto told = b.heard_by<control::attach_source>("a");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].source.weight, 7u);
  EXPECT_EQ(told[0].source.urgency, deadline_class::prefill);
  EXPECT_EQ(told[0].source.tenant, "red");
}

TEST(tenants, what_workers_hold_counts_after_a_restart) {
  tenant_limits t = limits_of("*");
  t.sessions = 1;
  t.highest = deadline_class::batch;
  tenants_bench b({t});
  b.step(b.attach_of(b.open(1, from("red")), 2));
  b.restart();
  b.connect("a");
  b.connect("b");
  ASSERT_EQ(b.view().sessions.size(), 1u);
  EXPECT_EQ(b.view().sessions[0].urgency, deadline_class::batch);
  EXPECT_EQ(b.refusal(from("red")).text, "no credit: tenant red has 1 of 1 sessions open");
}

TEST(tenants, tokens_in_flight_of_a_session_that_sends_chunks_count_in_full_after_a_restart) {
  tenant_limits t = limits_of("*");
  t.tokens_in_flight = 500;
  tenants_bench b({t});
  session_request r = from("red");
  r.micro_batches = 4;                   // 400 tokens
  b.step(b.attach_of(b.open(1, r), 2));  // in exchanges of 16 rows
  ASSERT_EQ(b.heard_by<control::attach_source>("a").at(0).source.rows_max, 16u);
  b.restart();
  b.connect("a");
  b.connect("b");
  EXPECT_EQ(b.refusal(r).text,
            "no credit: tenant red holds 400 tokens in flight and asks for 400 more; it may have "
            "500");
}

TEST(tenants, a_bill_over_the_limit_is_refused_with_its_numbers) {
  const session_request r = from("red");
  session_request four = r;
  four.micro_batches = 4;
  bench b;
  // 2 banks of 100 rows: a hidden row, its record and a row back.
  const std::uint64_t row = transport::padded_stride(b.options.model.hidden_size * sizeof(float));
  const std::uint64_t bill = 2 * 100 * (2 * row + transport::record_stride(2));
  tenants_bench exact(open_tenants(), bill);
  EXPECT_EQ(exact.refusal(r).code, status::ok);
  const error e = exact.refusal(four);
  EXPECT_EQ(e.code, status::no_memory);
  EXPECT_EQ(e.text, fmt::format("a session of 4 banks of 100 tokens at each worker needs {} bytes; "
                                "{} are available",
                                2 * bill, bill));
}

}  // namespace
}  // namespace moetier::coordinator
