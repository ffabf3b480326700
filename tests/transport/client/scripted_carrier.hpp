#pragma once
// A carrier without threads or wires: its workers answer inside poll(), or do what a test tells
// them: stay silent, get lost, answer STALE, refuse, damage rows. Banks, LATE and detach follow the
// contract of communication.hpp. Answers come in reverse order of sending, so that nothing can rest
// on order. After attach nothing allocates, unless keys are recorded.

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "tests/transport/client/toy_experts.hpp"
#include "transport/communication.hpp"

namespace moetier::client::toy {

enum class behaviour : std::uint8_t { answer, silent, lost, stale, refuse, damaged, short_rows };

class scripted_carrier final : public transport::Communication {
 public:
  struct worker_script {
    behaviour acts = behaviour::answer;
    std::uint32_t answers_first = 0;  // answers so many exchanges before it acts otherwise
    status refusal = status::internal;
    std::uint64_t refusal_detail = 0;
    std::uint32_t attached = 0;  // how often
    std::uint32_t exchanges = 0;
  };
  std::map<std::uint16_t, worker_script> workers;
  const transport::routing_snapshot* placed = nullptr;  // where experts lie
  bool record_keys = true;
  std::vector<transport::exchange_key> keys;
  std::vector<std::uint16_t> key_workers;  // whom each of them went to
  std::function<void()> on_wait;           // while a call waits: the test's turn

  std::string_view name() const noexcept override { return "scripted"; }
  transport::comm_capabilities capabilities() const noexcept override {
    return {.independent = true, .host_memory = true};
  }
  std::string describe() const override { return "scripted"; }
  expected<std::unique_ptr<transport::WorkerHalf>> make_worker(
      const transport::worker_options&) override {
    return fail(reason::not_enabled, "a worker half");
  }
  expected<std::unique_ptr<transport::SourceHalf>> make_source(
      const transport::source_options& options) override {
    return std::unique_ptr<transport::SourceHalf>(new half(*this, options));
  }

 private:
  enum class bank_state { free, open, sent, late, done, ended };
  struct bank {
    bank_state state = bank_state::free;
    std::uint16_t worker = 0;
    transport::exchange_ticket ticket = 0;
    transport::exchange_key key;
    std::uint32_t rows = 0;
    std::vector<std::byte> send;
    std::vector<std::byte> back;
  };

  class half final : public transport::SourceHalf {
   public:
    half(scripted_carrier& carrier, const transport::source_options& options)
        : carrier_(carrier), options_(options) {}

    const transport::member_address& address() const noexcept override { return address_; }

    expected<void> attach_worker(const transport::worker_identity& worker,
                                 const transport::member_address&) override {
      ++carrier_.workers[worker.worker.value].attached;
      const auto& shape = options_.shape;
      for (std::uint32_t b = 0; b < shape.banks; ++b) {
        bank fresh;
        fresh.worker = worker.worker.value;
        fresh.send.resize(shape.rows_max *
                          (shape.hidden_stride + transport::record_stride(shape.top_k)));
        fresh.back.resize(std::size_t{shape.return_rows_max} * shape.return_stride);
        banks_.push_back(std::move(fresh));
      }
      return {};
    }
    void detach_worker(worker_id worker) override {
      std::erase_if(banks_, [&](const bank& b) { return b.worker == worker.value; });
    }
    transport::comm_status open(worker_id worker, const transport::exchange_key& key,
                                transport::exchange_ticket& ticket) override {
      bool known = false;
      for (bank& b : banks_) {
        if (b.worker != worker.value) continue;
        known = true;
        if (b.state != bank_state::free) continue;
        b.state = bank_state::open;
        b.key = key;
        b.ticket = ticket = ++last_;
        return transport::comm_status::ok;
      }
      return known ? transport::comm_status::no_credit : transport::comm_status::unknown_member;
    }
    std::span<std::byte> send_region(transport::exchange_ticket ticket,
                                     std::uint32_t rows) override {
      bank* b = find(ticket);
      if (b == nullptr || b->state != bank_state::open || rows > options_.shape.rows_max) return {};
      b->rows = rows;
      return b->send;
    }
    transport::comm_status dispatch(transport::exchange_ticket ticket, std::uint32_t rows,
                                    std::uint32_t) override {
      bank* b = find(ticket);
      if (b == nullptr || b->state != bank_state::open || rows != b->rows || rows == 0) {
        return transport::comm_status::sequence;
      }
      b->state = bank_state::sent;
      ++carrier_.workers[b->worker].exchanges;
      if (carrier_.record_keys) {
        carrier_.keys.push_back(b->key);
        carrier_.key_workers.push_back(b->worker);
      }
      return transport::comm_status::ok;
    }
    std::size_t poll(std::span<transport::returned> out) override {
      std::size_t count = 0;
      for (auto b = banks_.rbegin(); b != banks_.rend() && count < out.size(); ++b) {
        if (b->state == bank_state::sent && act(*b, out[count])) ++count;
      }
      for (bank& b : banks_) {
        // A late return is dropped and frees its bank.
        if (b.state == bank_state::late && carrier_.workers[b.worker].acts == behaviour::answer) {
          b.state = bank_state::free;
        }
      }
      return count;
    }
    transport::comm_status expire(transport::exchange_ticket ticket) override {
      bank* b = find(ticket);
      if (b == nullptr || b->state != bank_state::sent) return transport::comm_status::sequence;
      b->state = bank_state::late;
      return transport::comm_status::ok;
    }
    void release(transport::exchange_ticket ticket) override {
      bank* b = find(ticket);
      if (b == nullptr) return;
      if (b->state == bank_state::done || b->state == bank_state::open) {
        std::fill(b->back.begin(), b->back.end(), std::byte{0xff});  // rows read later are NaN
        b->state = bank_state::free;
      }
    }
    void wait(std::chrono::nanoseconds, std::chrono::nanoseconds) override {
      if (carrier_.on_wait) carrier_.on_wait();
    }

   private:
    bank* find(transport::exchange_ticket ticket) {
      for (bank& b : banks_) {
        if (b.ticket == ticket && b.state != bank_state::free) return &b;
      }
      return nullptr;
    }

    bool act(bank& b, transport::returned& report) {
      worker_script& script = carrier_.workers[b.worker];
      behaviour acts = script.acts;
      if (script.answers_first > 0) {
        --script.answers_first;
        acts = behaviour::answer;
      }
      report = {};
      report.ticket = b.ticket;
      if (acts == behaviour::silent) return false;
      if (acts != behaviour::lost) b.state = bank_state::done;
      switch (acts) {
        case behaviour::silent: break;
        case behaviour::lost:
          report.result = transport::comm_status::peer_lost;
          b.state = bank_state::ended;
          return true;
        case behaviour::stale:
          report.result = transport::comm_status::stale;
          report.worker_status = status::stale_generation;
          report.detail = 9;
          return true;
        case behaviour::refuse:
          report.result = transport::comm_status::peer_refused;
          report.worker_status = script.refusal;
          report.detail = script.refusal_detail;
          return true;
        case behaviour::damaged: report.result = transport::comm_status::corrupt; return true;
        case behaviour::short_rows:
        case behaviour::answer: break;
      }
      const auto& shape = options_.shape;
      const std::uint32_t width = carrier_.placed->model.hidden_size;
      report.rows =
          answer(shape, static_cast<kernels::return_mode>(b.key.return_mode), width, b.rows,
                 b.send.data(), b.send.data() + std::size_t{b.rows} * shape.hidden_stride,
                 b.back.data(), [&](std::int32_t slot) {
                   return expert_in_slot(carrier_.placed->placement, b.key.layer, slot);
                 });
      if (acts == behaviour::short_rows) --report.rows;
      report.payload =
          std::span<const std::byte>(b.back).first(std::size_t{report.rows} * shape.return_stride);
      return true;
    }

    scripted_carrier& carrier_;
    transport::source_options options_;
    transport::member_address address_{std::byte{7}};
    std::vector<bank> banks_;
    transport::exchange_ticket last_ = 0;
  };
};

}  // namespace moetier::client::toy
