#pragma once
// A world around the coordinator's core for random sequences: a disk with compare-and-set, links
// that end when they are cut, workers that hold what they were told. It holds the core to what it
// promises: every request is answered once, nothing is committed before it is durable, epochs and
// snapshots only rise, and all it says can travel. Thread: owner.

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "tests/coordinator/core_bench.hpp"
#include "tests/fuzz/byte_source.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace moetier::fuzz {

class coordinator_world final {
 public:
  // `form`: how many workers, whether adapters are served, a plan file.
  explicit coordinator_world(std::uint8_t form);

  void step(const coordinator::event& what);
  // A request with a token of its own, made by `with_token`.
  template <class WithToken>
  void ask(WithToken with_token) {
    const coordinator::request_token token = ++last_token_;
    open_tokens_.insert(token);
    step(with_token(token));
  }

  void pass(duration_ns time);      // and says so
  void connect(byte_source& from);  // a process, as it should be or a little changed
  void lose_link(byte_source& from);
  void answer(byte_source& from);  // one worker, its oldest command, honestly or not
  void settle();                   // all workers, all commands, honestly; the disk too
  void beat(byte_source& from);
  void say_anything(byte_source& from);  // any message on any link
  void repeat(byte_source& from);        // what was said before, on any link
  void write(bool done);                 // the disk does what it was asked for
  void restart();                        // kill -9 and start again
  void shut_down();                      // afterwards nobody waits for an answer

 private:
  // A worker process as the coordinator sees it.
  struct process {
    control::hello hello;
    coordinator::link_number link = 0;  // 0: none
    std::deque<control::message> inbox;
    std::uint64_t sequence = 0;
    std::uint64_t tick = 0;
  };

  process& some(byte_source& from);
  void start();
  void say(process& by, control::message m);
  void obey(process& p, const control::message& m, std::uint8_t how);
  void take(const coordinator::effects& done);
  void on(const coordinator::send_to_worker& e);
  void on(const coordinator::cut_worker_link& e);
  void on(const coordinator::write_record& e);
  void on(const coordinator::publish_snapshot& e);
  void on(const coordinator::answer_session& e);
  void on(const coordinator::answer_done& e);
  void on(const coordinator::stopped& e);
  template <class Other>
  void on(const Other&) {}

  coordinator::core_options options_;
  std::optional<coordinator::record> disk_;
  std::optional<coordinator::write_record> pending_;
  std::unique_ptr<coordinator::core> core_;
  std::vector<process> processes_;
  std::deque<control::message> said_;
  std::set<coordinator::request_token> open_tokens_;
  coordinator::request_token last_token_ = 0;
  coordinator::link_number last_link_ = 0;
  transport::snapshot_ptr published_;
  time_ns now_ = 1000 * k_second;
  bool stopped_ = false;
};

}  // namespace moetier::fuzz
