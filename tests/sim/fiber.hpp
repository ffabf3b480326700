#pragma once
// A piece of blocking code on a stack of its own, run in turns by the simulation: it runs until it
// asks to wait, and goes on when it is resumed. One that is destroyed while it waits is unwound.
// What it throws comes out of resume(). Thread: owner (all fibers of a run are of one thread).

#include <ucontext.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>

namespace moetier::sim {

class fiber final {
 public:
  explicit fiber(std::function<void()> body);
  ~fiber();
  fiber(const fiber&) = delete;
  fiber& operator=(const fiber&) = delete;

  void resume();  // Requires: !done(), and not from inside a fiber
  bool done() const noexcept { return done_; }

  // From inside: gives the turn back until the next resume().
  static void wait();
  static fiber* current() noexcept;

 private:
  struct unwinding {};
  static void enter();
  void run() noexcept;

  std::function<void()> body_;
  std::unique_ptr<std::byte[]> stack_;
  ucontext_t here_{};
  ucontext_t caller_{};
  std::exception_ptr failure_;
  bool started_ = false;
  bool done_ = false;
  bool ending_ = false;
};

}  // namespace moetier::sim
