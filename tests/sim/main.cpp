// moetier_sim --seeds N --first S [--seconds-limit T] [--must-fail] [--trace]: runs seeds S, S+1,
// ...; a broken rule prints the seed and the command that repeats it. --must-fail is for builds
// with a planted mistake: success is that a seed finds it.

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <unistd.h>

#include "tests/sim/world.hpp"

namespace {

std::uint64_t current_seed = 0;
const char* program = "moetier_sim";

constexpr unsigned k_seed_seconds = 60;  // of the wall: a seed takes some 30 ms

// An assertion inside a core aborts, a loop without end is ended; the seed must be known all the
// same.
void on_end(int signal) {
  char text[256];
  const int n = std::snprintf(text, sizeof text,
                              "seed %llu %s; repeat with: %s --first %llu --seeds 1\n",
                              static_cast<unsigned long long>(current_seed),
                              signal == SIGALRM ? "does not end" : "aborted", program,
                              static_cast<unsigned long long>(current_seed));
  (void)!::write(STDOUT_FILENO, text, static_cast<std::size_t>(n));
  ::_exit(3);
}

std::uint64_t number_of(const char* text) { return std::strtoull(text, nullptr, 10); }

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t seeds = 300;
  std::uint64_t first = 1;
  double seconds_limit = 0;
  bool must_fail = false;
  bool traced = false;
  program = argv[0];
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--must-fail") {
      must_fail = true;
    } else if (flag == "--trace") {
      traced = true;
    } else if (i + 1 < argc && flag == "--seeds") {
      seeds = number_of(argv[++i]);
    } else if (i + 1 < argc && flag == "--first") {
      first = number_of(argv[++i]);
    } else if (i + 1 < argc && flag == "--seconds-limit") {
      seconds_limit = std::strtod(argv[++i], nullptr);
    } else {
      std::printf("%s: unknown argument %s\n", program, argv[i]);
      return 2;
    }
  }
  if (const char* full = std::getenv("MOETIER_FULL");
      full && std::strcmp(full, "1") == 0 && seeds == 300) {
    seeds = 5000;
  }
  std::signal(SIGABRT, on_end);
  std::signal(SIGALRM, on_end);

  const auto begun = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  };
  std::uint64_t done = 0;
  std::uint64_t events = 0;
  std::uint64_t calls_ok = 0;
  std::uint64_t calls_failed = 0;
  std::uint64_t replays = 0;
  for (; done < seeds && (seconds_limit == 0 || seconds() < seconds_limit); ++done) {
    current_seed = first + done;
    ::alarm(k_seed_seconds);
    moetier::sim::world w(current_seed, traced);
    try {
      w.run();
    } catch (const moetier::sim::violation& v) {
      std::printf("seed %llu: %s\nrepeat with: %s --first %llu --seeds 1\n",
                  static_cast<unsigned long long>(current_seed), v.what(), program,
                  static_cast<unsigned long long>(current_seed));
      return must_fail ? 0 : 1;
    }
    events += w.events();
    calls_ok += w.calls_ended_well();
    calls_failed += w.calls_ended_ill();
    replays += w.replays();
  }
  std::printf(
      "%llu seeds clean in %.1f s: %.0f seeds per minute, %llu events, %llu calls right, %llu "
      "ended "
      "in a typed error, %llu replays\n",
      static_cast<unsigned long long>(done), seconds(), 60 * static_cast<double>(done) / seconds(),
      static_cast<unsigned long long>(events), static_cast<unsigned long long>(calls_ok),
      static_cast<unsigned long long>(calls_failed), static_cast<unsigned long long>(replays));
  if (must_fail) std::printf("the planted mistake was not found\n");
  return must_fail ? 1 : 0;
}
