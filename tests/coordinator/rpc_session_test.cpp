// The client's link and the RPC server together: the life of a session, and what both do when the
// other one is slow, stopped, killed or gone.

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>

#include <gtest/gtest.h>

#include "tests/coordinator/fake_tier.hpp"
#include "tests/transport/tls/toy_authority.hpp"
#include "transport/client/link/tier_link.hpp"

namespace moetier::coordinator {
namespace {

using client::link_event;
using client::toy::make_snapshot;

constexpr duration_ns k_patience = 10 * k_second;  // for what must happen, never how long it takes

transport::snapshot_ptr snapshot(std::uint32_t revision = 1) {
  return std::make_shared<const transport::routing_snapshot>(make_snapshot({}, 1, revision));
}

std::unique_ptr<client::tier_link> link_to(const served& s) {
  auto made = client::connect(s.address(), k_patience);
  EXPECT_TRUE(made.has_value()) << made.error().text;
  return std::move(*made);
}

client::session_wish direct() { return {.incarnation = incarnation_id(0xfeed)}; }

class events final {
 public:
  explicit events(client::tier_link& link) {
    link.on_event([this](link_event e, session_id) {
      const std::lock_guard lock(mutex_);
      seen_.push_back(e);
      came_.notify_all();
    });
  }
  bool wait(link_event e, std::size_t times = 1) {
    std::unique_lock lock(mutex_);
    return came_.wait_for(lock, std::chrono::seconds(10), [&] {
      return std::count(seen_.begin(), seen_.end(), e) >= static_cast<std::ptrdiff_t>(times);
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<link_event> seen_;
};

class rpc_session : public testing::Test {
 protected:
  fake_tier tier{snapshot()};
  served server{tier};
};

TEST_F(rpc_session, opens_attaches_renews_and_closes_a_direct_session) {
  tier.lease = 40 * k_millisecond;
  transport::source_shape seen;
  transport::member_address address_seen;
  tier.on_attach = [&](const attach_session& a, const fake_tier::held&) -> expected<void> {
    seen = a.shape;
    address_seen = a.address;
    return {};
  };
  const auto link = link_to(server);
  auto wish = direct();
  wish.tenant = "blue";
  wish.tokens_max = 9;
  wish.return_mode = 1;
  const auto granted = link->open_session(wish, k_patience);
  ASSERT_TRUE(granted) << granted.error().text;
  EXPECT_EQ(granted->tokens_max, 9u);
  EXPECT_EQ(granted->top_k, 3u);
  EXPECT_EQ(granted->call_deadline, 5 * k_second);
  ASSERT_NE(granted->snapshot, nullptr);
  EXPECT_EQ(*granted->snapshot, *snapshot());
  EXPECT_EQ(*link->newest(), *snapshot());

  const transport::source_shape shape{9, 48, 3, 48, 27, 2};
  const transport::member_address address(17, std::byte{5});
  ASSERT_TRUE(link->attach(granted->session, shape, address, k_patience));
  EXPECT_EQ(seen, shape);
  EXPECT_EQ(address_seen, address);
  EXPECT_TRUE(tier.wait([](const auto& s) { return s.begin()->second.renewals >= 3; }));
  const auto held = tier.sessions().begin()->second;
  EXPECT_EQ(held.request.tenant, "blue");
  EXPECT_EQ(held.request.return_mode, 1);
  EXPECT_EQ(held.request.incarnation, wish.incarnation);

  ASSERT_TRUE(link->close_session(granted->session, k_patience));
  EXPECT_TRUE(tier.sessions().empty());
  const auto again = link->attach(granted->session, shape, address, k_patience);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().text, fmt::format("session {} is closed", granted->session.value));
  EXPECT_EQ(again.error().code, status::cancelled);
}

TEST_F(rpc_session, a_published_snapshot_reaches_a_waiting_client) {
  const auto link = link_to(server);
  const auto granted = link->open_session(direct(), k_patience);
  ASSERT_TRUE(granted);
  duration_ns worst = 0;
  for (std::uint32_t revision = 2; revision < 12; ++revision) {
    const auto seen = link->newest();
    tier.publish(snapshot(revision));
    const time_ns from = monotonic_now();
    const auto newer = link->wait_newer(granted->session, *seen, k_patience);
    ASSERT_NE(newer, nullptr);
    worst = std::max(worst, monotonic_now() - from);
    EXPECT_EQ(newer->shares.revision().counter, revision);
  }
  RecordProperty("worst_us", static_cast<int>(worst / k_microsecond));
  std::printf("published to seen: worst of 10: %d us\n", static_cast<int>(worst / k_microsecond));
}

TEST_F(rpc_session, waiting_for_a_newer_snapshot_ends_with_its_limit) {
  const auto link = link_to(server);
  const auto granted = link->open_session(direct(), k_patience);
  ASSERT_TRUE(granted);
  EXPECT_EQ(link->wait_newer(granted->session, *granted->snapshot, 20 * k_millisecond), nullptr);
}

TEST_F(rpc_session, waiting_for_a_newer_snapshot_ends_with_the_session) {
  const auto link = link_to(server);
  const auto granted = link->open_session(direct(), k_patience);
  ASSERT_TRUE(granted);
  const auto over = std::async(std::launch::async, [&] {
    return link->wait_newer(granted->session, *granted->snapshot, 600 * k_second);
  });
  tier.end(granted->session, make_error(reason::lease_lapsed, granted->session.value));
  ASSERT_EQ(over.wait_for(std::chrono::seconds(60)), std::future_status::ready);
}

TEST_F(rpc_session, a_session_that_the_coordinator_ends_is_lost) {
  const auto link = link_to(server);
  events happened(*link);
  const auto granted = link->open_session(direct(), k_patience);
  ASSERT_TRUE(granted);
  EXPECT_FALSE(link->session_lost(granted->session));
  tier.end(granted->session, make_error(reason::lease_lapsed, granted->session.value));
  EXPECT_TRUE(happened.wait(link_event::session_lost));
  EXPECT_TRUE(link->session_lost(granted->session));
  const auto attached = link->attach(granted->session, {}, {std::byte{1}}, k_patience);
  ASSERT_FALSE(attached);
  EXPECT_EQ(attached.error().text,
            fmt::format("the lease of session {} has lapsed", granted->session.value));
  EXPECT_EQ(attached.error().code, status::session_lost);
}

TEST_F(rpc_session, before_the_first_commit_the_tier_is_not_ready) {
  fake_tier empty(nullptr);
  served other(empty);
  const auto link = link_to(other);
  const auto newest = link->snapshot(k_patience);
  ASSERT_FALSE(newest);
  EXPECT_EQ(newest.error().text, "the tier is not ready: nothing is committed yet");
  EXPECT_EQ(newest.error().code, status::unavailable);
  const auto opened = link->open_session(direct(), k_patience);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().why, reason::not_ready);
}

TEST_F(rpc_session, a_killed_server_is_found_again_and_the_session_resumed) {
  const auto link = link_to(server);
  events happened(*link);
  const auto granted = link->open_session(direct(), k_patience);
  ASSERT_TRUE(granted);
  for (std::size_t round = 1; round <= 3; ++round) {
    server.stop();
    ASSERT_TRUE(happened.wait(link_event::coordinator_lost, round));
    EXPECT_NE(link->newest(), nullptr);
    EXPECT_FALSE(link->session_lost(granted->session));
    tier.publish(snapshot(static_cast<std::uint32_t>(10 * round)));  // what it missed meanwhile
    server.start();
    const time_ns up = monotonic_now();
    ASSERT_TRUE(happened.wait(link_event::coordinator_back, round));
    // The session itself is usable again, and sees the newest snapshot.
    ASSERT_TRUE(link->attach(granted->session, {9, 48, 3, 48, 27, 2}, {std::byte{1}}, k_patience));
    std::printf("server up to session attached: %d ms\n",
                static_cast<int>((monotonic_now() - up) / k_millisecond));
    EXPECT_EQ(link->newest()->shares.revision().counter, 10 * round);
  }
  EXPECT_FALSE(link->session_lost(granted->session));
}

TEST_F(rpc_session, a_session_that_a_restarted_coordinator_does_not_know_is_lost) {
  const auto link = link_to(server);
  events happened(*link);
  const auto granted = link->open_session(direct(), k_patience);
  ASSERT_TRUE(granted);
  server.stop();
  tier.forget_all();
  server.start();
  EXPECT_TRUE(happened.wait(link_event::session_lost));
  EXPECT_TRUE(link->session_lost(granted->session));
}

TEST_F(rpc_session, every_call_ends_by_its_limit_at_a_core_that_never_answers) {
  const auto link = link_to(server);
  tier.silent = true;
  const auto opened = link->open_session(direct(), 50 * k_millisecond);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().text, "open_session did not end within 50 ms");
  EXPECT_EQ(opened.error().code, status::timeout);
}

TEST_F(rpc_session, every_call_ends_by_its_limit_at_a_stopped_server_and_it_is_noticed) {
  const auto link = link_to(server);
  events happened(*link);
  const auto granted = link->open_session(direct(), k_patience);
  ASSERT_TRUE(granted);
  tier.freeze(true);
  constexpr duration_ns k_limit = 50 * k_millisecond;
  // The status call is the one that stops the server's thread; all after it meet a stopped one.
  EXPECT_EQ(link->document(client::admin_document::status, k_limit).error().code, status::timeout);
  EXPECT_EQ(link->document(client::admin_document::placement, k_limit).error().text,
            "document did not end within 50 ms");
  EXPECT_EQ(link->snapshot(k_limit).error().text, "snapshot did not end within 50 ms");
  EXPECT_EQ(link->open_session(direct(), k_limit).error().text,
            "open_session did not end within 50 ms");
  EXPECT_EQ(link->attach(granted->session, {}, {std::byte{1}}, k_limit).error().text,
            "attach did not end within 50 ms");
  ASSERT_TRUE(happened.wait(link_event::coordinator_lost));
  const auto away = link->snapshot(k_limit);
  ASSERT_FALSE(away);
  EXPECT_EQ(away.error().code, status::unavailable);
  tier.freeze(false);
  ASSERT_TRUE(happened.wait(link_event::coordinator_back));
  EXPECT_TRUE(link->snapshot(k_patience));
}

TEST(rpc_connect, gives_up_by_its_limit_when_nobody_listens_or_answers) {
  // A port that was free a moment ago.
  fake_tier tier(snapshot());
  std::string address;
  {
    served gone(tier);
    address = gone.address();
  }
  const time_ns began = monotonic_now();
  const auto refused = client::connect(address, 60 * k_millisecond, client::first_contact::patient);
  EXPECT_GE(monotonic_now() - began, 60 * k_millisecond);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text, "the coordinator is not reached: connection refused");
  EXPECT_EQ(refused.error().code, status::unavailable);

  // A listening socket that never answers: the system completes the connection by itself.
  const int silent = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof any;
  ASSERT_EQ(bind(silent, reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
  ASSERT_EQ(listen(silent, 8), 0);
  ASSERT_EQ(getsockname(silent, reinterpret_cast<sockaddr*>(&any), &length), 0);
  const auto mute =
      client::connect(fmt::format("127.0.0.1:{}", ntohs(any.sin_port)), 60 * k_millisecond);
  ASSERT_FALSE(mute);
  EXPECT_EQ(mute.error().text, "the coordinator is not reached: no answer in time");
  close(silent);

  const auto nonsense = client::connect("no port here", k_patience);
  ASSERT_FALSE(nonsense);
  EXPECT_EQ(nonsense.error().text,
            "address is no port here; allowed: host:port with a port of 0 to 65535, or unix:PATH");
}

TEST(rpc_connect, without_patience_a_refused_connection_is_told_at_once) {
  fake_tier tier(snapshot());
  std::string address;
  {
    served gone(tier);
    address = gone.address();
  }
  const time_ns began = monotonic_now();
  const auto refused = client::connect(address, 60 * k_second);
  EXPECT_LT(monotonic_now() - began, 30 * k_second);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text, "the coordinator is not reached: connection refused");
}

TEST(rpc_connect, a_call_waits_for_a_coordinator_that_is_about_to_come) {
  fake_tier tier(snapshot());
  served server(tier);
  const auto link = link_to(server);
  server.stop();
  std::thread later([&] { server.start(); });
  const auto newest = link->snapshot(k_patience);
  later.join();
  EXPECT_TRUE(newest) << newest.error().text;
}

TEST(rpc_link, leaves_the_signals_of_its_process_alone) {
  struct sigaction before {};
  sigaction(SIGPIPE, nullptr, &before);
  ASSERT_EQ(before.sa_handler, SIG_DFL);
  fake_tier tier(snapshot());
  served server(tier);
  const auto link = link_to(server);
  ASSERT_TRUE(link->open_session(direct(), k_patience));
  server.stop();
  // Written to a closed connection: without MSG_NOSIGNAL this would end the test's process.
  (void)link->snapshot(30 * k_millisecond);
  struct sigaction after {};
  sigaction(SIGPIPE, nullptr, &after);
  EXPECT_EQ(after.sa_handler, SIG_DFL);
}

TEST(rpc_server_start, refuses_what_it_may_not_listen_on) {
  fake_tier tier(snapshot());
  rpc_server first(tier, nullptr, {});
  tier.sink(&first);
  const auto port = first.start("127.0.0.1:0");
  ASSERT_TRUE(port);
  const std::string taken = fmt::format("127.0.0.1:{}", *port);
  rpc_server second(tier, nullptr, {});
  const auto busy = second.start(taken);
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().text, fmt::format("the RPC {} address is in use", taken));
  EXPECT_EQ(busy.error().why, reason::address_in_use);

  rpc_server open_to_all(tier, nullptr, {});
  const auto refused = open_to_all.start("0.0.0.0:0");
  ASSERT_FALSE(refused);
  EXPECT_EQ(
      refused.error().text,
      "setting coordinator.rpc_listen is 0.0.0.0:0; allowed: a loopback address while there are no "
      "certificates");
  EXPECT_EQ(refused.error().why, reason::config_invalid);
  tier.sink(nullptr);
}

TEST_F(rpc_session, adapters_are_loaded_and_dropped_by_name_and_answered_with_the_list) {
  tier.adapters_shown = {{.adapter = 3,
                          .name = "red",
                          .path = "/red",
                          .listed = true,
                          .workers = {"worker@1"},
                          .problem = ""}};
  scratch_folder folder;
  rpc_options options;
  options.admin_socket = folder.file("admin.sock");
  const served apart(tier, nullptr, options);
  const auto link = *client::connect(apart.admin_address(), k_patience);
  const auto loaded = link->load_adapter("red", "/red", k_patience);
  ASSERT_TRUE(loaded) << loaded.error().text;
  ASSERT_EQ(tier.loads.size(), 1u);
  EXPECT_EQ(tier.loads[0].name, "red");
  EXPECT_EQ(tier.loads[0].path, "/red");
  EXPECT_NE(loaded->find(R"("schema":"moetier.adapters/1")"), std::string::npos);
  EXPECT_NE(loaded->find(R"("enabled":true,"adapters":[{"adapter":3,"name":"red","path":"/red",)"
                         R"("listed":true,"workers":["worker@1"],"problem":""}])"),
            std::string::npos)
      << *loaded;
  EXPECT_EQ(*link->document(client::admin_document::adapters, k_patience), *loaded);
  EXPECT_EQ(*link->drop_adapter("red", k_patience), *loaded);
  EXPECT_EQ(tier.drops, std::vector<std::string>{"red"});
  tier.on_load = [](const load_adapter& e) {
    return fail(reason::adapter_refused, e.name, "worker worker@2: it is not there");
  };
  const auto refused = link->load_adapter("blue", "/blue", k_patience);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().why, reason::adapter_refused);
  EXPECT_EQ(refused.error().text, "adapter blue is not loaded: worker worker@2: it is not there");
}

TEST_F(rpc_session, documents_name_their_schema_and_are_made_from_the_view) {
  const auto link = link_to(server);
  const auto status = link->document(client::admin_document::status, k_patience);
  ASSERT_TRUE(status) << status.error().text;
  EXPECT_EQ(status->rfind(R"({"schema":"moetier.status/1","epoch":3,"generation":1,)", 0), 0u)
      << *status;
  const auto placement = link->document(client::admin_document::placement, k_patience);
  ASSERT_TRUE(placement) << placement.error().text;
  EXPECT_EQ(placement->rfind(R"({"schema":"moetier.placement/1",)", 0), 0u) << *placement;
  EXPECT_NE(placement->find(R"("plan":{"schema":"moetier.plan_file/1")"), std::string::npos)
      << *placement;
}

}  // namespace
}  // namespace moetier::coordinator
