#pragma once
// Rows between two doctors on the tier's own carrier: one end answers every exchange at once, as a
// worker that computes nothing would, the other measures. Thread: owner.

#include <memory>

#include "schemas/base/time.hpp"
#include "transport/communication.hpp"

namespace moetier::doctor {

// 256 rows of 4 KiB there, 16 bytes a row back: 1 MiB one way.
transport::source_shape exchange_shape() noexcept;

struct row_figures {
  duration_ns one_row_p50 = 0;  // 4 KiB there, 16 bytes back
  double bytes_per_second = 0;  // of 1 MiB there, two under way
};

class row_answerer final {
 public:
  static expected<std::unique_ptr<row_answerer>> make(transport::Communication& carrier,
                                                      incarnation_id own);
  const transport::member_address& address() const noexcept { return half_->address(); }
  expected<void> attach(incarnation_id source, const transport::member_address& address);
  // Answers what is there, or waits for a little while.
  void turn();

 private:
  explicit row_answerer(std::unique_ptr<transport::WorkerHalf> half) : half_(std::move(half)) {}
  std::unique_ptr<transport::WorkerHalf> half_;
};

class row_asker final {
 public:
  static expected<std::unique_ptr<row_asker>> make(transport::Communication& carrier,
                                                   incarnation_id own);
  const transport::member_address& address() const noexcept { return half_->address(); }
  expected<void> attach(incarnation_id worker, const transport::member_address& address);
  // reason::carrier_unavailable: rows did not come back.
  expected<row_figures> measure();

 private:
  explicit row_asker(std::unique_ptr<transport::SourceHalf> half) : half_(std::move(half)) {}
  // `count` exchanges of `rows`, `deep` under way at once; each one's time is added to `times`.
  expected<void> exchange(std::uint32_t count, std::uint32_t rows, std::uint32_t deep,
                          std::vector<duration_ns>& times);
  std::unique_ptr<transport::SourceHalf> half_;
  std::uint64_t step_ = 0;
};

}  // namespace moetier::doctor
