// One input, judged: it ends without an abort and within its time on the processor. Time is the
// thread's own, the best of three looks, so that a busy machine finds nothing.

#include <ctime>

#include <algorithm>
#include <cstdio>

#include "tests/fuzz/fuzz_target.hpp"

namespace moetier::fuzz {
namespace {

// 10 ms of the product; sanitizers and coverage make it several times slower.
#if defined(MOETIER_FUZZ_SANITIZED)
constexpr double k_input_ms_max = 100;
#else
constexpr double k_input_ms_max = 10;
#endif

double thread_ms() noexcept {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

double time_of(std::span<const std::uint8_t> bytes) {
  const double begin = thread_ms();
  run(bytes);
  return thread_ms() - begin;
}

}  // namespace

void check(bool holds, const char* what) noexcept {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

}  // namespace moetier::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace fuzz = moetier::fuzz;
  const std::span<const std::uint8_t> bytes(data, size);
  double ms = fuzz::time_of(bytes);
  for (int again = 0; again < 2 && ms > fuzz::k_input_ms_max; ++again) {
    ms = std::min(ms, fuzz::time_of(bytes));
  }
  if (ms > fuzz::k_input_ms_max) {
    std::fprintf(stderr, "fuzz: %zu bytes took %.1f ms\n", size, ms);
    fuzz::check(false, "an input took too long");
  }
  return 0;
}
