#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

#include "tests/transport/client/session_rig.hpp"
#include "transport/in_process/carrier.hpp"

// The source half over a real carrier: worker threads that answer by the toy experts' formula.
namespace moetier::client::toy {
namespace {

class toy_worker {
 public:
  toy_worker(transport::Communication& carrier, const transport::routing_snapshot& placed,
             std::size_t index, kernels::return_mode mode)
      : placed_(placed), mode_(mode) {
    const auto& entry = placed.workers[index];
    auto half = carrier.make_worker({.identity = {entry.worker, entry.incarnation}});
    EXPECT_TRUE(half) << half.error().text;
    half_ = std::move(*half);
  }
  ~toy_worker() { die(); }

  const transport::member_address& address() const { return half_->address(); }
  void attach(const source_session& session, const transport::source_identity& who) {
    const auto ok = half_->attach_source(who, session.shape(), session.address());
    EXPECT_TRUE(ok) << ok.error().text;
    thread_ = std::thread([this] { serve(); });
  }
  // As if the process were killed: the half is gone.
  void die() {
    stop_ = true;
    if (half_) half_->wake();
    if (thread_.joinable()) thread_.join();
    half_.reset();
  }

 private:
  void serve() {
    std::array<transport::arrival, 4> arrivals;
    while (!stop_) {
      const std::size_t count = half_->poll(arrivals);
      for (const auto& a : std::span(arrivals).first(count)) {
        const auto out = half_->return_region(a.ticket);
        const std::uint32_t rows =
            answer(*a.shape, mode_, placed_.model.hidden_size, a.rows, a.hidden.data(),
                   a.records.data(), out.data(), [&](std::int32_t slot) {
                     return expert_in_slot(placed_.placement, a.key.layer, slot);
                   });
        static_cast<void>(half_->give_back(a.ticket, rows, status::ok, 0));
      }
      if (count == 0) {
        half_->wait(std::chrono::microseconds(20), std::chrono::milliseconds(2));
      }
    }
  }

  const transport::routing_snapshot& placed_;
  kernels::return_mode mode_;
  std::unique_ptr<transport::WorkerHalf> half_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// A tier of threads on one carrier, and one session on it.
class thread_rig {
 public:
  // `hooks` (optional) outlive the rig.
  thread_rig(const tier_shape& tier, source_session_options wish,
             transport::fault_hooks* hooks = nullptr)
      : shape(tier), carrier(transport::make_in_process({}, hooks)) {
    auto snapshot = make_snapshot(shape);
    snapshot.carrier = "in_process";
    placed = std::make_unique<transport::routing_snapshot>(snapshot);
    for (std::size_t w = 0; w < shape.workers; ++w) {
      workers.push_back(std::make_unique<toy_worker>(*carrier, *placed, w, wish.mode));
      snapshot.workers[w].address = workers.back()->address();
    }
    publish(snapshot);
    wish.session = session_id(5);
    wish.source = source_id(1);
    wish.incarnation = incarnation_id(77);
    wish.tokens_max = 32;
    wish.top_k = shape.top_k;
    if (wish.call_deadline == k_second) wish.call_deadline = k_ample;
    wish.newest = [this] {
      const std::scoped_lock lock(mutex);
      return newest;
    };
    wish.wait_newer = [this](const transport::routing_snapshot& seen, duration_ns) {
      if (dead) mask(*dead);
      const std::scoped_lock lock(mutex);
      return transport::is_newer(*newest, seen) ? newest : nullptr;
    };
    auto made = source_session::open(*carrier, wish, newest);
    EXPECT_TRUE(made) << made.error().text;
    session = std::move(*made);
    for (auto& worker : workers) {
      worker->attach(*session, {wish.source, wish.session, wish.incarnation});
    }
  }
  ~thread_rig() { session.reset(); }

  void publish(transport::routing_snapshot snapshot) {
    const std::scoped_lock lock(mutex);
    newest = std::make_shared<const transport::routing_snapshot>(std::move(snapshot));
  }
  void mask(std::size_t index) {
    transport::routing_snapshot next = *newest;
    next.workers[index].live = false;
    std::vector<bool> live;
    for (const auto& worker : next.workers) live.push_back(worker.live);
    next.shares = eplb::shares::even(next.placement, live, {epoch_number(1), ++revision});
    publish(std::move(next));
  }

  tier_shape shape;
  std::unique_ptr<transport::Communication> carrier;
  std::unique_ptr<transport::routing_snapshot> placed;
  std::vector<std::unique_ptr<toy_worker>> workers;
  std::mutex mutex;
  transport::snapshot_ptr newest;
  std::uint32_t revision = 1;
  std::optional<std::size_t> dead;
  std::unique_ptr<source_session> session;
};

void expect_exact(thread_rig& rig, std::uint32_t tokens, unsigned seed) {
  const inputs in(rig.shape, tokens, seed);
  const layer_call call = session_rig::call_of(in, rig.shape.hidden_size);
  ASSERT_TRUE(rig.session->submit(call));
  std::vector<float> out(in.hidden.size());
  const auto ok = rig.session->collect(
      0, {.output = out.data(), .pitch = rig.shape.hidden_size * sizeof(float)});
  ASSERT_TRUE(ok) << ok.error().text;
  expect_bits(out, in.exact(rig.shape));
}

TEST(in_process_session, exact_is_bitwise_equal_for_any_workers_and_chunks) {
  unsigned seed = 0;
  for (const std::uint32_t count : {1u, 2u, 3u, 4u}) {
    for (const std::uint32_t rows : {0u, 5u}) {
      thread_rig rig({.workers = count, .slots_per_worker = count == 1 ? 8u : 5u},
                     {.mode = kernels::return_mode::exact, .rows_per_chunk_max = rows});
      for (int step = 0; step < 20; ++step) {
        ASSERT_TRUE(rig.session->step_begin(false));
        expect_exact(rig, 1 + seed % 32, seed);
        ++seed;
      }
    }
  }
}

TEST(in_process_session, a_worker_that_dies_costs_a_replay_and_no_bit) {
  for (std::size_t victim = 0; victim < 3; ++victim) {
    thread_rig rig({.workers = 3, .slots_per_worker = 8}, {.mode = kernels::return_mode::exact});
    rig.dead = victim;
    for (unsigned step = 0; step < 12; ++step) {
      if (step == 4) rig.workers[victim]->die();
      ASSERT_TRUE(rig.session->step_begin(false));
      expect_exact(rig, 32, step);
      if (testing::Test::HasFatalFailure()) return;
      if (step == 4) {
        EXPECT_EQ(rig.session->last_times().replays, 1u);
      }
    }
  }
}

// The source is source 1; its connection with a worker breaks, and both live on.
void break_connection(transport::fault_hooks& hooks, std::uint16_t worker) {
  hooks.break_between({transport::member_role::source, 1},
                      {transport::member_role::worker, worker});
}

TEST(in_process_session, a_broken_connection_costs_a_replay_on_a_replica_and_no_bit) {
  transport::fault_hooks hooks;
  thread_rig rig({.workers = 3, .slots_per_worker = 8}, {.mode = kernels::return_mode::exact},
                 &hooks);
  for (unsigned step = 0; step < 12; ++step) {
    ASSERT_TRUE(rig.session->step_begin(false));
    if (step % 4 == 2) break_connection(hooks, 2);
    expect_exact(rig, 32, step);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(in_process_session, without_a_replica_a_broken_connection_fails_one_step_and_serves_the_next) {
  transport::fault_hooks hooks;
  thread_rig rig({.workers = 2, .slots_per_worker = 4}, {.mode = kernels::return_mode::exact},
                 &hooks);
  ASSERT_TRUE(rig.session->step_begin(false));
  expect_exact(rig, 32, 0);
  for (unsigned round = 1; round < 6; ++round) {
    ASSERT_TRUE(rig.session->step_begin(false));
    break_connection(hooks, 2);
    const inputs in(rig.shape, 32, round);
    ASSERT_TRUE(rig.session->submit(session_rig::call_of(in, rig.shape.hidden_size)));
    std::vector<float> out(in.hidden.size());
    const auto lost = rig.session->collect(
        0, {.output = out.data(), .pitch = rig.shape.hidden_size * sizeof(float)});
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().why, reason::worker_lost);
    for (unsigned step = 0; step < 8; ++step) {  // also once each bank was in use
      ASSERT_TRUE(rig.session->step_begin(step == 0));
      expect_exact(rig, 32, 10 * round + step);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace moetier::client::toy
