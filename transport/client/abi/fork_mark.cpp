#include "transport/client/abi/fork_mark.hpp"

#include <atomic>
#include <mutex>

#include <pthread.h>

namespace moetier::abi {
namespace {

// How many forks lie between the first open and this process. A fact of the process, so it is the
// one global of the library.
std::atomic<std::uint32_t> g_forks{0};
std::once_flag g_watched;

}  // namespace

fork_mark::fork_mark() {
  std::call_once(g_watched, [] {
    ::pthread_atfork(nullptr, nullptr, [] { g_forks.fetch_add(1, std::memory_order_relaxed); });
  });
  generation_ = g_forks.load(std::memory_order_relaxed);
}

expected<void> fork_mark::check() const {
  if (generation_ == g_forks.load(std::memory_order_relaxed)) return {};
  return fail(reason::sequence, "a handle of the parent process", "this process was forked");
}

}  // namespace moetier::abi
