#pragma once
// What one connection has in service: its running calls and its sessions. Cap'n Proto 0.9 lets
// calls run on when their connection ends, and with them the objects they run on, so the end of a
// connection is told here and not by destructors. Shared by a connection and its capabilities.
// Thread: kj (the server's).

#include <cstdint>
#include <set>

#include "transport/client/link/limits.hpp"

namespace moetier::coordinator {

class session_service;

class account final {
 public:
  // A call that the client gave up still runs: this bounds them too. False: over the bound.
  bool begin_call() {
    if (calls_ >= client::k_questions_max) return false;
    ++calls_;
    return true;
  }
  void end_call() { --calls_; }

  void add(session_service& session) { sessions_.insert(&session); }
  void remove(session_service& session) { sessions_.erase(&session); }
  void close();  // the connection is gone: thin sessions end, watches too

 private:
  std::uint32_t calls_ = 0;
  std::set<session_service*> sessions_;
};

}  // namespace moetier::coordinator
