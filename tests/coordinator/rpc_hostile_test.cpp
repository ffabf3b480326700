// Clients that break the protocol: garbage, lying segment tables, versions of another time, calls
// without end, answers nobody reads. Each costs its own connection; the others go on.

#include <capnp/rpc.capnp.h>
#include <capnp/serialize.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include "tests/coordinator/fake_tier.hpp"
#include "tests/coordinator/raw_client.hpp"
#include "transport/client/link/tier_link.hpp"

namespace {

std::atomic<bool> out_of_watches{false};

}  // namespace

// In the C library's place: the next descriptor to be observed is refused when a test says so.
extern "C" int epoll_ctl(int epoll, int what, int fd, epoll_event* wish) noexcept {
  if (what == EPOLL_CTL_ADD && out_of_watches.exchange(false)) {
    errno = ENOSPC;
    return -1;
  }
  return static_cast<int>(syscall(SYS_epoll_ctl, epoll, what, fd, wish));
}

namespace moetier::coordinator {
namespace {

constexpr duration_ns k_patience = 10 * k_second;

class rpc_hostile : public testing::Test {
 protected:
  rpc_hostile() {
    link = std::move(*client::connect(server.address(), k_patience));
    session = link->open_session({.incarnation = incarnation_id(1)}, k_patience)->session;
  }
  // The honest client beside the hostile one, on the connection it had all the time.
  void TearDown() override {
    EXPECT_TRUE(link->snapshot(k_patience));
    EXPECT_FALSE(link->session_lost(session));
    EXPECT_TRUE(link->close_session(session, k_patience));
  }
  bool wait_counter(std::uint64_t rpc_counters::*counter, std::uint64_t value) const {
    const time_ns until = monotonic_now() + k_patience;
    while (server.server->counters().*counter < value && monotonic_now() < until) {
    }
    return server.server->counters().*counter == value;
  }

  bool wait_gone() const {  // all but the honest one
    const time_ns until = monotonic_now() + k_patience;
    while (server.server->counters().connections_open != 1 && monotonic_now() < until) {
    }
    return server.server->counters().connections_open == 1;
  }

  fake_tier tier{
      std::make_shared<const transport::routing_snapshot>(client::toy::make_snapshot({}))};
  served server{tier};
  std::unique_ptr<client::tier_link> link;
  session_id session;
};

TEST_F(rpc_hostile, garbage_ends_its_connection_and_is_counted) {
  std::uint64_t bad = 0;
  // An HTTP request, all ones, and a table of segments that the protocol does not allow.
  for (const std::vector<std::uint32_t>& words : {
           std::vector<std::uint32_t>{0x20544547, 0x4854202f, 0x312f5054, 0x0a0d312e},
           std::vector<std::uint32_t>(64, 0xffffffff),
           std::vector<std::uint32_t>(64, 16),  // 17 segments
       }) {
    EXPECT_TRUE(is_closed_after(connect_to(server.port), words));
    EXPECT_TRUE(wait_counter(&rpc_counters::frames_malformed, ++bad));
  }
}

TEST_F(rpc_hostile, a_table_that_claims_too_much_is_refused_before_memory_is_taken) {
  // One segment of 8 MiB + 8; sixteen whose sum overflows 32 bits.
  EXPECT_TRUE(is_closed_after(connect_to(server.port), {0, 1024 * 1024 + 1}));
  EXPECT_TRUE(wait_counter(&rpc_counters::frames_malformed, 1));
  std::vector<std::uint32_t> sixteen(18, 0xffffffff);
  sixteen[0] = 15;
  EXPECT_TRUE(is_closed_after(connect_to(server.port), sixteen));
  EXPECT_TRUE(wait_counter(&rpc_counters::frames_malformed, 2));
}

TEST_F(rpc_hostile, a_message_cut_short_ends_its_connection) {
  const int fd = connect_to(server.port);
  const std::uint32_t words[] = {0, 1000, 1, 2};  // of 8,000 bytes the first 8
  ASSERT_EQ(send(fd, words, sizeof words, 0), static_cast<ssize_t>(sizeof words));
  shutdown(fd, SHUT_WR);
  EXPECT_TRUE(is_closed_after(fd, {}));
  EXPECT_TRUE(wait_counter(&rpc_counters::frames_malformed, 1));
}

TEST_F(rpc_hostile, what_is_framed_well_but_is_no_rpc_message_ends_its_connection) {
  // One segment of two words whose root pointer leads out of it.
  EXPECT_TRUE(is_closed_after(connect_to(server.port), {0, 2, 0xfffffff8, 0x0000ffff, 0, 0}));
}

TEST_F(rpc_hostile, a_connection_that_cannot_begin_ends_alone) {
  out_of_watches = true;
  EXPECT_TRUE(is_closed_after(connect_to(server.port), {}));
  EXPECT_FALSE(out_of_watches);
  // The listener goes on: what the next one says is read.
  EXPECT_TRUE(is_closed_after(connect_to(server.port), std::vector<std::uint32_t>(64, ~0u)));
  EXPECT_TRUE(wait_counter(&rpc_counters::frames_malformed, 1));
}

TEST_F(rpc_hostile, another_protocol_version_is_refused_first) {
  raw_client raw(server.port);
  // Without a deadline too: the version is looked at before.
  EXPECT_EQ(raw.refusal(raw.send(raw.tier().pingRequest(), 1, 0, 2)),
            "protocol version 2 is not supported; supported: 1");
  const auto response = raw.send(raw.tier().openSessionRequest(), 9, k_patience, 0);
  EXPECT_EQ(raw.refusal(response), "protocol version 0 is not supported; supported: 1");
  EXPECT_EQ(response.getStatus().getCode(), static_cast<std::uint8_t>(status::version));
  EXPECT_EQ(response.getStatus().getRequestId(), 9u);
  EXPECT_FALSE(response.getStatus().getRetryable());
  EXPECT_EQ(raw.refusal(raw.send(raw.tier().pingRequest())), "");
}

TEST_F(rpc_hostile, a_call_without_a_deadline_is_invalid) {
  raw_client raw(server.port);
  const auto response = raw.send(raw.tier().infoRequest(), 1, 0);
  EXPECT_EQ(raw.refusal(response), "info has deadlineNs 0; allowed: 1 and more");
  EXPECT_EQ(response.getStatus().getCode(), static_cast<std::uint8_t>(status::invalid));
}

TEST_F(rpc_hostile, bad_wishes_are_refused_with_what_is_allowed) {
  raw_client raw(server.port);
  const auto refusal = [&](auto spoil) {
    auto request = raw.tier().openSessionRequest();
    spoil(request.initWish());
    return raw.refusal(raw.send(request));
  };
  EXPECT_EQ(refusal([](auto wish) { wish.setTenant("a\nb"); }),
            "tenant is not printable; allowed: 1 to 64 printable characters");
  EXPECT_EQ(refusal([](auto wish) { wish.setTenant(""); }),
            "tenant is 0 bytes; allowed: 1 to 64 printable characters");
  EXPECT_EQ(refusal([](auto wish) { wish.setReturnMode(2); }),
            "return_mode is 2; allowed: 0 (partial) or 1 (exact)");
  EXPECT_EQ(refusal([](auto wish) { wish.setReturnDtype(3); }),
            "return has dtype 3; allowed: 0 (f32), 1 (f16) or 2 (bf16)");
  EXPECT_EQ(refusal([](auto wish) { wish.setThin(true); }), "the gateway is not enabled");
}

TEST_F(rpc_hostile, an_address_of_a_wrong_size_is_refused) {
  raw_client raw(server.port);
  auto opened = raw.send(raw.tier().openSessionRequest());
  const auto refusal = [&](capnp::uint bytes) {
    auto request = opened.getSession().attachRequest();
    request.initAddress(bytes);
    return raw.refusal(raw.send(request));
  };
  EXPECT_EQ(refusal(0), "address bytes is 0; at most 4096");
  EXPECT_EQ(refusal(4097), "address bytes is 4097; at most 4096");
  EXPECT_EQ(refusal(4096), "");
}

TEST_F(rpc_hostile, a_foreign_session_cannot_be_resumed) {
  raw_client raw(server.port);
  auto request = raw.tier().resumeSessionRequest();
  request.setSession(session.value);
  request.setIncarnation(2);  // it is 1
  EXPECT_EQ(raw.refusal(raw.send(request)), fmt::format("session {} is not known", session.value));
}

TEST_F(rpc_hostile, calls_without_end_are_bounded) {
  raw_client raw(server.port);
  tier.silent = true;
  // Openings that nothing will answer: the bound ends the connection, not the process.
  std::vector<kj::Promise<void>> calls;
  for (int i = 0; i < 300; ++i) {
    auto request = raw.tier().openSessionRequest();
    client::write_call(request.initCall(), 77, 1, 600 * k_second);
    calls.push_back(request.send().ignoreResult().catch_([](kj::Exception&&) {}));
  }
  kj::joinPromises(
      kj::Array<kj::Promise<void>>(kj::heapArray<kj::Promise<void>>(
          std::make_move_iterator(calls.begin()), std::make_move_iterator(calls.end()))))
      .wait(raw.loop.scope());
  EXPECT_TRUE(wait_counter(&rpc_counters::connections_overrun, 1));
  tier.silent = false;
}

// Each that waits gets a copy of the snapshot when one comes.
TEST_F(rpc_hostile, of_many_watches_of_a_session_the_newest_waits) {
  raw_client raw(server.port);
  auto opened = raw.send(raw.tier().openSessionRequest());
  const auto seen = tier.view();
  std::vector<capnp::RemotePromise<rpc::Session::WatchResults>> watches;
  for (int i = 0; i < 5; ++i) {
    auto request = opened.getSession().watchRequest();
    client::write_call(request.initCall(), 77, 1, k_patience);
    request.initSeen().setGeneration(seen->generation.value);
    request.getSeen().setSharesEpoch(seen->revision.epoch.value);
    request.getSeen().setSharesCounter(seen->revision.counter);
    watches.push_back(request.send());
  }
  for (int i = 0; i < 4; ++i) {
    const auto yielded = watches[i].wait(raw.loop.scope());
    EXPECT_EQ(raw.refusal(yielded), "no credit: the session has a newer watch");
    EXPECT_EQ(yielded.getStatus().getRetryAfterNs(), 100 * k_millisecond);
  }
  tier.publish(std::make_shared<const transport::routing_snapshot>(
      client::toy::make_snapshot({}, 1, seen->revision.counter + 1)));
  const auto newest = watches[4].wait(raw.loop.scope());
  EXPECT_EQ(raw.refusal(newest), "");
  EXPECT_GT(newest.getSnapshot().size(), 0u);
}

// Those that the client gave up run on and count.
TEST_F(rpc_hostile, one_call_more_than_a_connection_may_have_is_told_when_to_come_again) {
  raw_client raw(server.port);
  tier.silent = true;  // opening waits
  for (const int calls : {200, 56}) {
    std::vector<kj::Promise<void>> opening;
    for (int i = 0; i < calls; ++i) {
      auto request = raw.tier().openSessionRequest();
      client::write_call(request.initCall(), 77, 1, k_patience);
      opening.push_back(request.send().ignoreResult());
    }
    // Answered behind them: they are in service when they are given up.
    const auto ping = raw.send(raw.tier().pingRequest());
    if (calls == 200) {
      EXPECT_EQ(raw.refusal(ping), "");
      continue;
    }
    EXPECT_EQ(raw.refusal(ping), "no credit: too many calls of one connection");
    EXPECT_EQ(ping.getStatus().getRetryAfterNs(), 10 * k_millisecond);
  }
  tier.silent = false;
}

// Calls as bytes, so that nobody has to read what comes back.
void append_call(std::vector<std::uint32_t>& out, std::uint32_t question) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<capnp::rpc::Message>();
  if (question == 0) {
    root.initBootstrap().setQuestionId(0);
  } else {
    auto call = root.initCall();
    call.setQuestionId(question);
    call.initTarget().initPromisedAnswer().setQuestionId(question < 2 ? 0 : 1);
    if (question > 1) {
      auto ops = call.getTarget().getPromisedAnswer().initTransform(1);
      ops[0].setGetPointerField(1);  // (status, admin)
    }
    call.setInterfaceId(question == 1 ? capnp::typeId<rpc::Tier>() : capnp::typeId<rpc::Admin>());
    call.setMethodId(question == 1 ? 5 : 0);
    const auto fill = [](auto params) {
      params.initCall().setProtocol(1);
      params.getCall().setDeadlineNs(k_patience);
    };
    if (question == 1) {
      fill(call.initParams().getContent().initAs<rpc::Tier::AdminParams>());
    } else {
      fill(call.initParams().getContent().initAs<rpc::Admin::StatusParams>());
    }
  }
  const auto words = capnp::messageToFlatArray(message);
  const auto bytes = words.asBytes();
  const std::size_t at = out.size();
  out.resize(at + bytes.size() / 4);
  std::memcpy(out.data() + at, bytes.begin(), bytes.size());
}

TEST_F(rpc_hostile, a_client_that_never_reads_loses_its_connection) {
  tier.workers_shown = 4000;  // a document of about a megabyte
  const int fd = connect_to(server.port, 4096);
  std::vector<std::uint32_t> words;
  for (std::uint32_t q = 0; q < 40; ++q) append_call(words, q);
  ASSERT_GT(send(fd, words.data(), words.size() * 4, MSG_NOSIGNAL), 0);
  // The honest one and this; then it goes without a byte of its answers read.
  EXPECT_TRUE(wait_counter(&rpc_counters::connections_total, 2));
  EXPECT_TRUE(wait_gone());
  EXPECT_EQ(server.server->counters().frames_malformed, 0u);
  close(fd);
}

}  // namespace
}  // namespace moetier::coordinator
