#include "tests/sim/fiber.hpp"

#include <utility>

#include "schemas/base/assert.hpp"

namespace moetier::sim {
namespace {

constexpr std::size_t k_stack_bytes = 256 * 1024;

fiber* running = nullptr;

}  // namespace

fiber::fiber(std::function<void()> body)
    : body_(std::move(body)), stack_(std::make_unique_for_overwrite<std::byte[]>(k_stack_bytes)) {}

fiber::~fiber() {
  if (!started_ || done_) return;
  ending_ = true;
  try {
    resume();
  } catch (...) {  // what it throws while it is unwound is nobody's any more
  }
  MOETIER_ASSERT(done_);
}

fiber* fiber::current() noexcept { return running; }

void fiber::resume() {
  MOETIER_ASSERT(!done_ && running == nullptr);
  if (!std::exchange(started_, true)) {
    getcontext(&here_);
    here_.uc_stack.ss_sp = stack_.get();
    here_.uc_stack.ss_size = k_stack_bytes;
    here_.uc_link = nullptr;
    makecontext(&here_, &fiber::enter, 0);
  }
  running = this;
  swapcontext(&caller_, &here_);
  running = nullptr;
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void fiber::wait() {
  fiber* const self = running;
  MOETIER_ASSERT(self != nullptr);
  swapcontext(&self->here_, &self->caller_);
  if (self->ending_) throw unwinding{};
}

void fiber::enter() {
  running->run();
  fiber* const self = running;
  self->done_ = true;
  setcontext(&self->caller_);
}

void fiber::run() noexcept {
  try {
    body_();
  } catch (const unwinding&) {
  } catch (...) {
    failure_ = std::current_exception();
  }
}

}  // namespace moetier::sim
