#pragma once
// The calls that wait for the engine: each is judged when it arrives, keeps its place until its
// turn comes, and is judged once more then. A call whose predicted end lies behind its deadline is
// refused on arrival: OVERLOADED when it is the calls ahead that take the time, TIMEOUT when the
// call alone does; one that became too late while it waited is TIMEOUT. There are as many places as
// the sources have banks, so nothing here grows.
//
// A deadline travels as what is left of it when the rows were sent (arrival::budget_us; the carrier
// takes off what went by while they landed) and becomes a point of this process's clock when the
// engine looks: clocks of two processes are never compared. Rows may have lain there since it
// looked last, so that time counts as gone. Of what is left, half may be spent waiting: a queue
// that filled the whole deadline would let calls end just too late, all of them. A call that has
// rows at several workers is decided on by one of them, which the source picks; the others admit
// what that one may have admitted (k_flag_decided).
//
// Thread: owner (the engine); figures(): any. Allocates in attach(), never in admit(), next(),
// served().

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/base/deadline_class.hpp"
#include "schemas/base/status.hpp"
#include "transport/communication.hpp"
#include "workers/engine/call_cost.hpp"
#include "workers/engine/fair_queue.hpp"

namespace moetier::workers {

// By class; the refused ones by reason. Counted since the start.
struct queue_figures {
  std::array<std::uint64_t, k_deadline_classes> rows_waiting{};
  std::array<std::uint64_t, k_deadline_classes> deadline_missed{};
  std::uint64_t refused_overloaded = 0;
  std::uint64_t refused_late = 0;
  std::uint64_t given_up = 0;  // by their sources, before their turn came
};

class waiting_calls final {
 public:
  explicit waiting_calls(std::uint32_t sources_max);

  // Whose calls a source brings. A source that was attached before is forgotten first.
  void attach(source_id source, std::string_view tenant, std::uint32_t weight,
              deadline_class urgency);
  // Its calls leave their places: their rows must no longer be read.
  void detach(source_id source);

  struct verdict {
    status code = status::ok;  // ok, overloaded, timeout; bad_state of a source not attached
    std::uint64_t detail = 0;  // transport::time_needed
  };

  // Gives the call a place, or refuses it.
  // `unseen`: how long it may have been here already.
  verdict admit(const transport::arrival& work, time_ns now, duration_ns unseen = 0);
  // Its source waits no more: it leaves its place. False: it does not wait here.
  bool give_up(transport::arrival_ticket ticket);
  bool empty() const noexcept { return queue_.empty(); }
  // Whether rows of a generation older than this wait.
  bool holds_before(generation_number generation) const noexcept;
  // Takes the next call from its place; `late` says whether it still makes sense to compute it.
  // Valid until the next admit(). Requires: not empty().
  const transport::arrival& next(time_ns now, verdict& late);
  // The call of the last next() was computed.
  void served(duration_ns took, time_ns ended);

  queue_figures figures() const noexcept;

 private:
  struct flow {
    bool attached = false;
    fair_queue::tenant tenant = 0;
    deadline_class urgency = deadline_class::decode;
  };
  struct tenant_place {
    std::string name;
    std::uint32_t sources = 0;  // 0 = free
  };
  struct counters {
    std::array<std::atomic<std::uint64_t>, k_deadline_classes> rows{};
    std::array<std::atomic<std::uint64_t>, k_deadline_classes> missed{};
    std::atomic<std::uint64_t> overloaded{0};
    std::atomic<std::uint64_t> late{0};
    std::atomic<std::uint64_t> given_up{0};
  };

  void count_rows(deadline_class urgency, std::int64_t rows) noexcept;
  verdict refuse_late(deadline_class urgency, duration_ns cost) noexcept;

  fair_queue queue_;
  call_cost cost_;
  std::vector<transport::arrival> calls_;  // by place
  std::vector<time_ns> deadlines_;         // by place
  std::vector<flow> flows_;                // by source
  std::vector<tenant_place> tenants_;
  struct {
    deadline_class urgency = deadline_class::decode;
    std::uint32_t rows = 0;
    time_ns deadline = 0;
  } taken_;
  counters counters_;
};

}  // namespace moetier::workers
