#include "actors/doctor/row_exchange.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

namespace moetier::doctor {
namespace {

constexpr session_id k_session{1};
constexpr source_id k_source{0};
constexpr worker_id k_worker{0};
constexpr std::uint32_t k_rows = 256;
constexpr std::uint32_t k_warmup = 20;
constexpr std::uint32_t k_small = 200;
constexpr std::uint32_t k_large = 64;
constexpr std::uint32_t k_budget_us = 2'000'000;
constexpr duration_ns k_limit = 5 * k_second;
constexpr std::chrono::microseconds k_spin{50};
constexpr std::chrono::milliseconds k_turn{20};

}  // namespace

transport::source_shape exchange_shape() noexcept {
  return {.rows_max = k_rows,
          .hidden_stride = 4096,
          .top_k = 1,
          .return_stride = 16,
          .return_rows_max = k_rows,
          .banks = 2};
}

expected<std::unique_ptr<row_answerer>> row_answerer::make(transport::Communication& carrier,
                                                           incarnation_id own) {
  auto half =
      carrier.make_worker({.identity = {transport::k_worker_unnumbered, own}, .sources_max = 1});
  if (!half) return tl::unexpected(half.error());
  return std::unique_ptr<row_answerer>(new row_answerer(std::move(*half)));
}

expected<void> row_answerer::attach(incarnation_id source,
                                    const transport::member_address& address) {
  return half_->attach_source({k_source, k_session, source}, exchange_shape(), address);
}

void row_answerer::turn() {
  std::array<transport::arrival, 4> arrived;
  const std::size_t count = half_->poll(arrived);
  for (std::size_t i = 0; i < count; ++i) {
    const auto answer = half_->return_region(arrived[i].ticket);
    std::fill(answer.begin(), answer.end(), std::byte{0});
    half_->give_back(arrived[i].ticket, arrived[i].rows, status::ok, 0);
  }
  if (count == 0) half_->wait(k_spin, k_turn);
}

expected<std::unique_ptr<row_asker>> row_asker::make(transport::Communication& carrier,
                                                     incarnation_id own) {
  auto half = carrier.make_source(
      {.identity = {k_source, k_session, own}, .shape = exchange_shape(), .workers_max = 1});
  if (!half) return tl::unexpected(half.error());
  return std::unique_ptr<row_asker>(new row_asker(std::move(*half)));
}

expected<void> row_asker::attach(incarnation_id worker, const transport::member_address& address) {
  return half_->attach_worker({k_worker, worker}, address);
}

expected<void> row_asker::exchange(std::uint32_t count, std::uint32_t rows, std::uint32_t deep,
                                   std::vector<duration_ns>& times) {
  std::map<transport::exchange_ticket, time_ns> under_way;
  std::array<transport::returned, 4> back;
  const time_ns until = monotonic_now() + k_limit;
  for (std::uint32_t sent = 0, done = 0; done < count;) {
    while (sent < count && under_way.size() < deep) {
      transport::exchange_ticket ticket = 0;
      const time_ns now = monotonic_now();
      transport::exchange_key key;
      key.session = k_session;
      key.step = ++step_;
      key.layer = layer_id(0);
      if (half_->open(k_worker, key, ticket) != transport::comm_status::ok ||
          half_->send_region(ticket, rows).empty() ||
          half_->dispatch(ticket, rows, k_budget_us) != transport::comm_status::ok) {
        return fail(reason::carrier_unavailable, "ucx", "rows cannot be sent to this peer");
      }
      under_way.emplace(ticket, now);
      ++sent;
    }
    const std::size_t came = half_->poll(back);
    for (std::size_t i = 0; i < came; ++i) {
      if (back[i].result != transport::comm_status::ok || back[i].worker_status != status::ok) {
        return fail(reason::carrier_unavailable, "ucx",
                    transport::comm_status_name(back[i].result));
      }
      times.push_back(monotonic_now() - under_way.at(back[i].ticket));
      under_way.erase(back[i].ticket);
      half_->release(back[i].ticket);
      ++done;
    }
    if (came != 0) continue;
    if (monotonic_now() > until) {
      return fail(reason::carrier_unavailable, "ucx", "rows did not come back within 5 s");
    }
    half_->wait(k_spin, k_turn);
  }
  return {};
}

expected<row_figures> row_asker::measure() {
  std::vector<duration_ns> times;
  if (auto done = exchange(k_warmup, k_rows, 1, times); !done) return tl::unexpected(done.error());
  times.clear();
  if (auto done = exchange(k_small, 1, 1, times); !done) return tl::unexpected(done.error());
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  row_figures f{.one_row_p50 = times[times.size() / 2]};
  const time_ns began = monotonic_now();
  if (auto done = exchange(k_large, k_rows, 2, times); !done) return tl::unexpected(done.error());
  const double bytes = double{k_large} * k_rows * exchange_shape().hidden_stride;
  f.bytes_per_second =
      bytes / (static_cast<double>(monotonic_now() - began) / static_cast<double>(k_second));
  return f;
}

}  // namespace moetier::doctor
