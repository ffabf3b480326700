// Both actors around their cores, in two processes over loopback: the worker's process is forked
// before this one has any thread, and told the port by a pipe.

#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <mutex>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actors/control/coordinator_host.hpp"
#include "actors/control/worker_host.hpp"
#include "tests/schemas/resolution/toy_environment.hpp"

namespace moetier::actors {
namespace {

constexpr duration_ns k_limit = 10 * k_second;

model_description small_model() {
  model_description m;
  m.model_type = "mixtral";
  m.hidden_size = 16;
  m.intermediate_size = 16;
  m.experts = 4;
  m.top_k = 2;
  m.layers_total = 1;
  m.moe_layers = {layer_id(0)};
  m.routing.method = routing_method::renormalize;
  m.router_width = 16;
  m.fingerprint = fingerprint_of(m);
  return m;
}

// Loads nothing and says it did; computes nothing.
class willing_machinery final : public worker_machinery {
 public:
  worker_host* host = nullptr;

  void load(const workers::load_plan& plan) override {
    const auto& layers = plan.placement.layers();
    std::vector<std::uint64_t> checksums;
    for (const auto& layer : layers) {
      for (const std::int32_t expert : layer.experts) {
        checksums.push_back(static_cast<std::uint64_t>(expert + 1));
      }
    }
    host->post(workers::plan_loaded{plan.generation, plan.plan, std::move(checksums)});
  }
  void cancel(const workers::cancel_load&) override {}
  void serve(const workers::serve_generation&) override {}
  void release(const workers::release_pages& p) override {
    host->post(workers::pages_released{p.older_than});
  }
  void attach(const control::source_attachment& s) override {
    host->post(workers::source_attach_done{s.source, s.incarnation, true, ""});
  }
  void detach(const workers::detach_source&) override {}
  void load_adapter(const control::held_adapter& a) override {
    host->post(workers::adapter_load_done{a, true, ""});
  }
  void drop_adapter(std::uint32_t) override {}
  void drain() override { host->post(workers::engine_drained{}); }
  void stopped(bool, const std::string&) override { std::_Exit(0); }
  workers::engine_progress progress(bool) override {
    workers::engine_progress p;
    const std::lock_guard lock(mutex_);
    p.tick = ++tick_;
    changed_.notify_all();
    return p;
  }

  // Half a heartbeat each.
  bool wait_for_ticks(std::uint64_t n) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::nanoseconds(k_limit), [&] { return tick_ >= n; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t tick_ = 0;
};

workers::core_options worker_options(std::uint64_t node) {
  workers::core_options o;
  o.name = "worker@1";
  o.incarnation = incarnation_id(77);
  o.node = node;
  o.model_fingerprint = small_model().fingerprint;
  o.checkpoint_digest = 5;
  o.environment = toy::environment_document();
  o.carrier = "in_process";
  o.address = {1, 2, 3};
  return o;
}

[[noreturn]] void worker_process(int port_pipe) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::uint16_t port = 0;
  if (::read(port_pipe, &port, sizeof port) != sizeof port) std::_Exit(1);
  event_log log("worker@1", log_level::off, true);
  auto world = *actor_world::make({}, log);
  willing_machinery machinery;
  worker_host host(*world, {"127.0.0.1", port}, worker_options(world->node()), 3, machinery, log);
  machinery.host = &host;
  host.start();
  for (;;) ::pause();
}

class waiting_sink final : public coordinator::control_sink {
 public:
  void on_answer(const coordinator::answer_session& a) override {
    const std::lock_guard lock(mutex_);
    granted_ = a.grant.has_value();
    changed_.notify_all();
  }
  void on_answer(const coordinator::answer_done&) override {}
  void on_snapshot(const transport::snapshot_ptr& s) override {
    const std::lock_guard lock(mutex_);
    newest_ = s;
    changed_.notify_all();
  }
  void on_session_ended(const coordinator::session_ended&) override {}

  template <class Condition>
  bool wait(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::nanoseconds(k_limit),
                             [&] { return condition(newest_, granted_); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  transport::snapshot_ptr newest_;
  bool granted_ = false;
};

// A coordinator in this process and one forked worker.
class loopback_test : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    worker_ = ::fork();
    if (worker_ == 0) worker_process(ends[0]);
    world_ = *actor_world::make({}, log_);
    coordinator::core_options o;
    o.model = small_model();
    o.node = world_->node();
    host_ = std::make_unique<coordinator_host>(
        *world_, std::move(o), std::nullopt,
        coordinator_world{
            [](epoch_number, const coordinator::record&) -> expected<void> { return {}; },
            [](bool, reason, const std::string&) {}},
        log_);
    host_->start(sink_);
    const auto at = host_->publish({"127.0.0.1", 0});
    ASSERT_TRUE(at.has_value());
    address_ = *at;
    ASSERT_EQ(::write(ends[1], &address_.port, sizeof address_.port), 2);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  void TearDown() override {
    ::kill(worker_, SIGKILL);
    ::waitpid(worker_, nullptr, 0);
    host_.reset();
    world_.reset();
  }

  bool worker_is(bool live) {
    return sink_.wait([&](const transport::snapshot_ptr& s, bool) {
      return s && s->workers.size() == 1 && s->workers[0].live == live;
    });
  }

  event_log log_{"coordinator", log_level::off, true};
  pid_t worker_ = 0;
  config::endpoint address_;
  waiting_sink sink_;
  std::unique_ptr<actor_world> world_;
  std::unique_ptr<coordinator_host> host_;
};

TEST_F(loopback_test, a_worker_joins_loads_and_is_committed_and_its_death_is_seen) {
  ASSERT_TRUE(worker_is(true));
  EXPECT_TRUE(host_->view()->ready);
  EXPECT_EQ(host_->view()->workers.at(0).name, "worker@1");
  coordinator::open_session opened{.token = 1, .request = {}};
  opened.request.incarnation = incarnation_id(9);
  host_->post(opened);
  EXPECT_TRUE(sink_.wait([](const auto&, bool granted) { return granted; }));
  ::kill(worker_, SIGKILL);
  EXPECT_TRUE(worker_is(false));
  EXPECT_FALSE(host_->view()->ready);
}

TEST_F(loopback_test, a_frozen_worker_is_left_out) {
  ASSERT_TRUE(worker_is(true));
  ::kill(worker_, SIGSTOP);
  EXPECT_TRUE(worker_is(false));
}

TEST_F(loopback_test, a_busy_control_port_is_a_typed_error) {
  const auto again = host_->publish(address_);
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().why, reason::address_in_use);
}

// Two containers that share a host's name space may both be pid 1.
TEST_F(loopback_test, a_worker_that_names_the_coordinators_own_node_identity_never_joins) {
  ASSERT_TRUE(worker_is(true));
  auto second = *actor_world::make({}, log_);
  willing_machinery machinery;
  workers::core_options o = worker_options(world_->node());
  o.name = "worker@2";
  worker_host twin(*second, address_, std::move(o), 4, machinery, log_);
  machinery.host = &twin;
  twin.start();
  // Long enough for a link that comes up in a millisecond.
  ASSERT_TRUE(machinery.wait_for_ticks(8));
  EXPECT_FALSE(twin.summary().joined);
  EXPECT_EQ(host_->view()->workers.size(), 1U);
}

}  // namespace
}  // namespace moetier::actors
