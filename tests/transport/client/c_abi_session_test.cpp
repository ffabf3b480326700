// A session's events, its lease, its end, and a child process that forks off with it.

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <future>
#include <thread>

#include <fmt/core.h>

#include "tests/transport/client/c_abi_rig.hpp"

namespace moetier::client::toy {
namespace {

bool sleeps(pid_t thread) {
  std::ifstream stat(fmt::format("/proc/self/task/{}/stat", thread));
  std::string text;
  std::getline(stat, text);
  const auto name_end = text.rfind(')');
  return name_end != std::string::npos && text.compare(name_end, 3, ") S") == 0;
}

TEST_F(c_abi, closing_a_session_ends_the_waits_for_its_events) {
  for (int round = 0; round < 20; ++round) {
    ASSERT_EQ(moetier_session_open(service, nullptr, &session), MOETIER_OK);
    std::array<std::future<std::pair<moetier_status, std::string>>, 3> waits;
    std::array<std::atomic<pid_t>, 3> threads{};
    for (std::size_t i = 0; i < waits.size(); ++i) {
      waits[i] = std::async(std::launch::async, [&thread = threads[i], waited = session] {
        auto event = sized<moetier_event>();
        thread = ::gettid();
        const moetier_status how = moetier_next_event(waited, &event, 3600 * k_second);
        return std::pair(how, last_text());
      });
    }
    // A wait must be under way when its session is closed. Once all sleep, none is on its way
    // there.
    while (!std::ranges::all_of(threads, [](const auto& t) { return t != 0 && sleeps(t); })) {
      std::this_thread::yield();
    }
    const auto id = tier.attached.back();
    EXPECT_EQ(moetier_session_close(std::exchange(session, nullptr)), MOETIER_OK);
    for (auto& wait : waits) {
      EXPECT_EQ(wait.get(), std::pair(MOETIER_CANCELLED, fmt::format("session {} is closed", id)));
    }
  }
}

TEST_F(c_abi, tells_events_in_order) {
  open();
  auto event = sized<moetier_event>();
  EXPECT_EQ(moetier_next_event(session, &event, 0), MOETIER_PENDING);
  pollfd waiting{.fd = moetier_event_fd(session), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&waiting, 1, 0), 0);
  tier.sink(link_event::coordinator_lost, session_id{});
  tier.publish(make_snapshot(tier.shape, 1, 2, {true, false, true}));
  tier.sink(link_event::snapshot, session_id{});
  tier.publish(make_snapshot(tier.shape, 2));
  tier.sink(link_event::snapshot, session_id{});
  EXPECT_EQ(::poll(&waiting, 1, 0), 1);
  begin();
  const auto next = [&] {
    EXPECT_EQ(moetier_next_event(session, &event, 0), MOETIER_OK);
    return event.kind;
  };
  EXPECT_EQ(next(), static_cast<std::uint32_t>(MOETIER_EVENT_COORDINATOR_LOST));
  EXPECT_EQ(next(), static_cast<std::uint32_t>(MOETIER_EVENT_MEMBERSHIP));
  EXPECT_EQ(event.workers_live, 2u);
  EXPECT_EQ(next(), static_cast<std::uint32_t>(MOETIER_EVENT_GENERATION_READY));
  EXPECT_EQ(event.generation, 2u);
  EXPECT_EQ(next(), static_cast<std::uint32_t>(MOETIER_EVENT_GENERATION_MOVED));
  EXPECT_EQ(moetier_next_event(session, &event, 0), MOETIER_PENDING);
  EXPECT_EQ(::poll(&waiting, 1, 0), 0);
}

TEST_F(c_abi, says_so_when_events_were_dropped) {
  open();
  for (int i = 0; i < 1030; ++i) tier.sink(link_event::coordinator_lost, session_id{});
  auto event = sized<moetier_event>();
  for (int i = 0; i < 1024; ++i) {
    ASSERT_EQ(moetier_next_event(session, &event, 0), MOETIER_OK);
    EXPECT_EQ(event.kind, static_cast<std::uint32_t>(MOETIER_EVENT_COORDINATOR_LOST));
  }
  EXPECT_EQ(moetier_next_event(session, &event, 0), MOETIER_PENDING);
  tier.sink(link_event::coordinator_back, session_id{});
  ASSERT_EQ(moetier_next_event(session, &event, 0), MOETIER_OK);
  EXPECT_EQ(event.kind, static_cast<std::uint32_t>(MOETIER_EVENT_OVERFLOW));
  ASSERT_EQ(moetier_next_event(session, &event, 0), MOETIER_OK);
  EXPECT_EQ(event.kind, static_cast<std::uint32_t>(MOETIER_EVENT_COORDINATOR_BACK));
}

TEST_F(c_abi, a_lost_lease_ends_the_session_and_no_other) {
  open();
  moetier_session* other = nullptr;
  ASSERT_EQ(moetier_session_open(service, nullptr, &other), MOETIER_OK);
  tier.sink(link_event::session_lost, session_id(1));
  expect_refused(moetier_step_begin(session, nullptr, nullptr), MOETIER_SESSION_LOST,
                 "the lease of session 1 has lapsed");
  EXPECT_EQ(moetier_step_begin(other, nullptr, nullptr), MOETIER_OK);
  EXPECT_EQ(moetier_session_close(other), MOETIER_OK);
  EXPECT_EQ(tier.closed, (std::vector<std::uint32_t>{2}));
}

TEST_F(c_abi, gives_the_lease_back_when_a_session_cannot_be_opened) {
  tier.refuse_attach = make_error(reason::worker_lost, 2, 0);
  moetier_session* none = nullptr;
  EXPECT_EQ(moetier_session_open(service, nullptr, &none), MOETIER_TIMEOUT);
  EXPECT_EQ(tier.closed, (std::vector<std::uint32_t>{1}));
}

TEST_F(c_abi, the_link_tells_its_events_while_a_carrier_is_being_opened) {
  ASSERT_EQ(moetier_service_close(service), MOETIER_OK);
  abi::service_world world = world_of(tier);
  std::future<void> told;
  bool went_on = false;
  world.open_carrier = [&, open = world.open_carrier](std::string_view name) {
    // As long as the carrier takes, the link's thread must renew leases.
    told = std::async(std::launch::async,
                      [&] { tier.sink(link_event::coordinator_lost, session_id{}); });
    went_on = told.wait_for(std::chrono::seconds(2)) == std::future_status::ready;
    return open(name);
  };
  const auto options = at_tier();
  ASSERT_TRUE(abi::open_service(&options, &service, std::move(world)));
  open();
  EXPECT_TRUE(went_on);
}

TEST_F(c_abi, a_forked_child_may_use_no_handle) {
  open();
  begin();
  const pid_t child = ::fork();
  if (child == 0) {
    const bool refused = moetier_step_begin(session, nullptr, nullptr) == MOETIER_BAD_STATE &&
                         moetier_session_close(session) == MOETIER_BAD_STATE &&
                         moetier_service_close(service) == MOETIER_BAD_STATE;
    ::_exit(refused ? 0 : 1);
  }
  int how = -1;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  EXPECT_EQ(how, 0);
  EXPECT_EQ(moetier_step_end(session, nullptr, nullptr), MOETIER_OK);
}

}  // namespace
}  // namespace moetier::client::toy
