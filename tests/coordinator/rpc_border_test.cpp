// Who gets in by which way and what each may do there: TLS by a zone's certificates, the
// administrators' socket, loopback in the clear. Refusals are typed, counted, and say nothing of
// this machine.

#include <gtest/gtest.h>

#include <sys/stat.h>

#include "coordinator/rpc/outward_error.hpp"
#include "tests/coordinator/fake_tier.hpp"
#include "tests/coordinator/raw_client.hpp"
#include "tests/transport/tls/toy_authority.hpp"
#include "transport/client/link/tier_link.hpp"

namespace moetier::coordinator {
namespace {

constexpr duration_ns k_patience = 10 * k_second;
constexpr duration_ns k_short = 400 * k_millisecond;

tls::toy::wish named(const std::string& name, const std::string& usage = "serverAuth,clientAuth") {
  tls::toy::wish w;
  w.common_name = name;
  w.usage = usage;
  return w;
}

class rpc_border : public testing::Test {
 protected:
  rpc_options options() {
    rpc_options o;
    o.credential = *tls::credential::load(zone.issue("coordinator", named("coordinator")),
                                          tls::role::server, tls::unix_now_s());
    o.administrators = {"ops"};
    o.admin_socket = folder.file("admin.sock");
    o.notice = [this](const rpc_notice& n) {
      const std::lock_guard lock(mutex);
      notices.push_back(n);
    };
    return o;
  }
  auto reach(const tls::file_names& files, duration_ns limit = k_patience,
             const std::string& name = "") {
    return client::connect(served_tier.address(), limit,
                           {.tls = client::tls_wish{.files = files, .server_name = name}});
  }
  std::unique_ptr<client::tier_link> link_as(const std::string& name) {
    auto made = reach(zone.issue(name, named(name, "clientAuth")));
    EXPECT_TRUE(made) << made.error().text;
    return made ? std::move(*made) : nullptr;
  }
  std::uint64_t refused(tls::refusal why) const {
    return served_tier.server->counters().handshakes_refused[static_cast<std::size_t>(why)];
  }
  bool wait_for(const std::function<bool()>& is_so) const {
    const time_ns until = monotonic_now() + k_patience;
    while (!is_so() && monotonic_now() < until) {
    }
    return is_so();
  }

  scratch_folder folder;
  tls::toy::authority zone{folder, "zone"};
  tls::toy::authority other{folder, "other"};
  std::mutex mutex;
  std::vector<rpc_notice> notices;
  fake_tier tier{
      std::make_shared<const transport::routing_snapshot>(client::toy::make_snapshot({}))};
  served served_tier{tier, nullptr, options()};
};

TEST_F(rpc_border, a_certificate_of_the_zone_opens_a_session_under_its_name) {
  const auto link = link_as("blue");
  const auto opened = link->open_session({.incarnation = incarnation_id(1)}, k_patience);
  ASSERT_TRUE(opened) << opened.error().text;
  EXPECT_EQ(tier.sessions().at(opened->session).request.tenant, "blue");
  const auto foreign =
      link->open_session({.tenant = "red", .incarnation = incarnation_id(2)}, k_patience);
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().text, "tenant red is denied: the certificate names blue");
  EXPECT_TRUE(link->open_session({.tenant = "blue", .incarnation = incarnation_id(3)}, k_patience));
}

TEST_F(rpc_border, who_proves_nothing_is_turned_away_and_counted) {
  const auto why = [&](const tls::file_names& files, const std::string& name = "") {
    const auto made = reach(files, k_patience, name);
    return made ? std::string() : made.error().text;
  };
  const auto own = zone.issue("own");
  const auto foreign = other.issue("foreign");
  // Of another authority, while it believes ours.
  EXPECT_EQ(
      why({foreign.certificate, foreign.key, foreign.authority}),
      "the coordinator is not reached: its certificate is none that the zone's authority issued "
      "for this");
  EXPECT_TRUE(wait_for([&] { return refused(tls::refusal::by_peer) == 1; }));
  // The coordinator's certificate is of another host.
  EXPECT_EQ(why(own, "tier.example"),
            "the coordinator is not reached: its certificate is of another name");
  // Without TLS there is not a byte of an answer.
  EXPECT_TRUE(is_closed_after(connect_to(served_tier.port), {0x20544547, 0x4854202f, 0x312f5054}));
  EXPECT_TRUE(wait_for([&] { return refused(tls::refusal::no_tls) == 1; }));
  EXPECT_TRUE(link_as("blue"));
}

TEST_F(rpc_border, a_client_certificate_cannot_pose_as_the_coordinator) {
  rpc_options wrong = options();
  wrong.credential = *tls::credential::load(zone.issue("thief", named("thief", "clientAuth")),
                                            tls::role::client, tls::unix_now_s());
  wrong.admin_socket.clear();
  fake_tier apart{
      std::make_shared<const transport::routing_snapshot>(client::toy::make_snapshot({}))};
  const served posing(apart, nullptr, wrong);
  const auto made = client::connect(posing.address(), k_patience,
                                    {.tls = client::tls_wish{.files = zone.issue("own")}});
  ASSERT_FALSE(made);
  EXPECT_EQ(
      made.error().text,
      "the coordinator is not reached: its certificate is none that the zone's authority issued "
      "for this");
}

TEST_F(rpc_border, another_tenants_session_cannot_be_resumed) {
  const auto blue = link_as("blue");
  const auto opened = blue->open_session({.incarnation = incarnation_id(7)}, k_patience);
  ASSERT_TRUE(opened);
  const auto resume_as = [&](const std::string& name) {
    raw_client raw(
        *tls::credential::load(zone.issue(name, named(name)), tls::role::client, tls::unix_now_s()),
        served_tier.port);
    auto request = raw.tier().resumeSessionRequest();
    request.setSession(opened->session.value);
    request.setIncarnation(7);  // overheard, say
    return raw.refusal(raw.send(request));
  };
  EXPECT_EQ(resume_as("red"), fmt::format("session {} is not known", opened->session.value));
  EXPECT_EQ(resume_as("blue"), "");
  EXPECT_FALSE(blue->session_lost(opened->session));
}

TEST_F(rpc_border, only_administrators_see_and_change_the_tier) {
  const auto blue = link_as("blue");
  const auto seen = blue->document(client::admin_document::status, k_patience);
  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().code, status::denied);
  EXPECT_EQ(seen.error().text,
            "status is denied: this certificate's name is none of security.administrators");
  EXPECT_FALSE(blue->load_adapter("red", "/red", k_patience));
  EXPECT_TRUE(tier.loads.empty());
  EXPECT_GE(served_tier.server->counters().calls_denied, 1u);
  const auto ops = link_as("ops");
  EXPECT_TRUE(ops->document(client::admin_document::status, k_patience));
  EXPECT_TRUE(ops->load_adapter("red", "/red", k_patience));
}

TEST_F(rpc_border, the_socket_is_its_owners_alone_and_takes_changes) {
  struct stat about {};
  ASSERT_EQ(::stat(served_tier.options.admin_socket.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0600u);
  const auto local = client::connect(served_tier.admin_address(), k_patience);
  ASSERT_TRUE(local) << local.error().text;
  EXPECT_TRUE((*local)->load_adapter("red", "/red", k_patience));
  EXPECT_TRUE((*local)->open_session({.incarnation = incarnation_id(9)}, k_patience));
}

TEST_F(rpc_border, renewed_certificates_serve_new_connections_and_old_ones_live_on) {
  const auto before = link_as("blue");
  served_tier.server->renew(
      *tls::credential::load(other.issue("coordinator2"), tls::role::server, tls::unix_now_s()));
  const auto by_new = reach(other.issue("new"));
  EXPECT_TRUE(by_new) << by_new.error().text;
  EXPECT_FALSE(reach(zone.issue("old"), k_short));
  EXPECT_TRUE(before->snapshot(k_patience));
}

TEST_F(rpc_border, a_thousand_silent_connections_lock_nobody_out) {
  const auto before = link_as("blue");
  std::vector<int> silent;
  for (int i = 0; i < 600; ++i) silent.push_back(connect_to(served_tier.port));
  EXPECT_TRUE(link_as("red"));
  EXPECT_TRUE(before->snapshot(k_patience));
  // They are taken one by one, so the last of them make room a little later.
  EXPECT_TRUE(wait_for([&] {
    return served_tier.server->counters().connections_yielded >= 600u - 256u;
  }));
  for (const int fd : silent) close(fd);
}

TEST(clear_border, over_loopback_nothing_can_be_changed_but_everything_read) {
  scratch_folder folder;
  fake_tier tier{
      std::make_shared<const transport::routing_snapshot>(client::toy::make_snapshot({}))};
  rpc_options o;
  o.admin_socket = folder.file("admin.sock");
  const served here(tier, nullptr, o);
  const auto link = *client::connect(here.address(), k_patience);
  const auto refused = link->load_adapter("red", "/red", k_patience);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, status::denied);
  EXPECT_EQ(refused.error().text,
            "load_adapter is denied: without TLS, changes are taken over the coordinator's Unix "
            "socket alone");
  EXPECT_FALSE(link->drop_adapter("red", k_patience));
  EXPECT_TRUE(tier.loads.empty());
  const auto status = link->document(client::admin_document::status, k_patience);
  ASSERT_TRUE(status);
  EXPECT_NE(status->find("\"admin_socket\":\"" + o.admin_socket + "\""), std::string::npos);
}

TEST(clear_border, idle_connections_lock_nobody_out) {
  fake_tier tier{
      std::make_shared<const transport::routing_snapshot>(client::toy::make_snapshot({}))};
  const served here(tier);
  std::vector<int> idle;
  for (int i = 0; i < 300; ++i) idle.push_back(connect_to(here.port));
  const auto link = client::connect(here.address(), k_patience);
  EXPECT_TRUE(link) << link.error().text;
  for (const int fd : idle) close(fd);
}

TEST(outward_error, tells_nothing_of_this_machine) {
  for (std::uint16_t i = 1; i <= static_cast<std::uint16_t>(reason::internal_error); ++i) {
    const auto why = static_cast<reason>(i);
    error inner = make_error(reason::internal_error, "x");
    inner.why = why;
    inner.code = status_of(why);
    inner.text = "cannot read /srv/models/a: 10.0.0.7:7401";
    const error shown = outward(inner, 12);
    EXPECT_EQ(shown.request_id, 12u);
    if (may_leave(why)) continue;
    EXPECT_EQ(shown.text, "internal error: the coordinator's log says more");
    EXPECT_EQ(shown.why, reason::internal_error);
  }
  EXPECT_FALSE(may_leave(reason::file_unreadable));
  EXPECT_FALSE(may_leave(reason::state_unusable));
  EXPECT_TRUE(may_leave(reason::invalid_argument));
}

}  // namespace
}  // namespace moetier::coordinator
