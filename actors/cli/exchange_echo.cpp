#include "actors/cli/exchange_echo.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <thread>

namespace moetier::cli {
namespace {

constexpr session_id k_session{1};
constexpr source_id k_source{0};
constexpr worker_id k_worker{0};
constexpr incarnation_id k_source_incarnation{11};
constexpr incarnation_id k_worker_incarnation{22};
constexpr duration_ns k_call_limit = 2 * k_second;
// The first exchanges write their banks: one that nobody wrote is the kernel's page of zeros, which
// is copied faster than any row.
constexpr std::uint32_t k_banks = 2;
constexpr std::chrono::milliseconds k_turn{20};

// Gives back what comes, until told to end.
class answering_thread final {
 public:
  answering_thread(transport::WorkerHalf& half, std::chrono::nanoseconds spin)
      : half_(half), thread_([this, spin] { run(spin); }) {}
  ~answering_thread() {
    over_.store(true);
    half_.wake();
    thread_.join();
  }
  answering_thread(const answering_thread&) = delete;
  answering_thread& operator=(const answering_thread&) = delete;

 private:
  void run(std::chrono::nanoseconds spin) {
    std::array<transport::arrival, 4> arrived;
    while (!over_.load(std::memory_order_relaxed)) {
      const std::size_t count = half_.poll(arrived);
      for (std::size_t i = 0; i < count; ++i) {
        if (++answered_ <= k_banks)
          std::ranges::fill(half_.return_region(arrived[i].ticket), std::byte{1});
        half_.give_back(arrived[i].ticket, arrived[i].rows, status::ok, 0);
      }
      if (count == 0) half_.wait(spin, k_turn);
    }
  }

  transport::WorkerHalf& half_;
  std::uint64_t answered_ = 0;  // the thread's
  std::atomic<bool> over_{false};
  std::thread thread_;
};

expected<duration_ns> exchange_once(transport::SourceHalf& half, std::uint64_t step,
                                    const exchange_wish& wish) {
  const time_ns began = monotonic_now();
  transport::exchange_key key;
  key.session = k_session;
  key.step = step;
  transport::exchange_ticket ticket = 0;
  if (half.open(k_worker, key, ticket) != transport::comm_status::ok)
    return fail(reason::carrier_unavailable, wish.carrier, "rows cannot be sent");
  const std::span<std::byte> region = half.send_region(ticket, wish.rows);
  if (step <= k_banks) std::ranges::fill(region, std::byte{1});
  if (region.empty() || half.dispatch(ticket, wish.rows, k_call_limit / k_microsecond) !=
                            transport::comm_status::ok) {
    return fail(reason::carrier_unavailable, wish.carrier, "rows cannot be sent");
  }
  std::array<transport::returned, 1> back;
  while (half.poll(back) == 0) {
    if (monotonic_now() - began > k_call_limit)
      return fail(reason::carrier_unavailable, wish.carrier, "rows did not come back");
    half.wait(std::chrono::nanoseconds(wish.spin), k_turn);
  }
  const duration_ns took = monotonic_now() - began;
  if (back[0].result != transport::comm_status::ok || back[0].rows != wish.rows)
    return fail(reason::carrier_unavailable, wish.carrier, "rows did not come back whole");
  half.release(ticket);
  return took;
}

}  // namespace

expected<std::vector<std::uint64_t>> exchange_times(const exchange_wish& wish) {
  auto carrier = transport::open_carrier(wish.carrier, wish.options);
  if (!carrier) return tl::unexpected(carrier.error());
  const transport::source_shape shape{.rows_max = wish.rows,
                                      .hidden_stride = wish.row_bytes,
                                      .top_k = 1,
                                      .return_stride = wish.row_bytes,
                                      .return_rows_max = wish.rows,
                                      .banks = k_banks};
  const transport::source_identity self{k_source, k_session, k_source_incarnation};
  const transport::worker_identity peer{k_worker, k_worker_incarnation};
  const auto source = (*carrier)->make_source({.identity = self, .shape = shape, .workers_max = 1});
  if (!source) return tl::unexpected(source.error());
  const auto worker = (*carrier)->make_worker({.identity = peer, .sources_max = 1});
  if (!worker) return tl::unexpected(worker.error());
  if (auto ok = (*worker)->attach_source(self, shape, (*source)->address()); !ok)
    return tl::unexpected(ok.error());
  if (auto ok = (*source)->attach_worker(peer, (*worker)->address()); !ok)
    return tl::unexpected(ok.error());
  const answering_thread answers(**worker, std::chrono::nanoseconds(wish.spin));
  std::vector<std::uint64_t> times;
  times.reserve(wish.calls);
  const std::uint64_t before = std::uint64_t{wish.warmup} + k_banks;
  for (std::uint64_t n = 1; n <= before + wish.calls; ++n) {
    const auto took = exchange_once(**source, n, wish);
    if (!took) return tl::unexpected(took.error());
    if (n > before) times.push_back(*took);
  }
  return times;
}

}  // namespace moetier::cli
