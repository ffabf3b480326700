// Runs a fuzz target without libFuzzer: its seeds, past findings (findings/TARGET/), then a fixed
// number of mutations from a fixed seed, so that two runs do the same. What an abort was about lies
// in a file, and the last line says how to run it again.
//
//   TARGET                       as ctest runs it
//   TARGET --runs N --seed S     N mutations from S
//   TARGET FILE...               these inputs alone

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "tests/fuzz/mutator.hpp"

namespace moetier::fuzz {
namespace {

constexpr rlim_t k_memory_bytes_max = rlim_t{1} << 30;
constexpr std::uint64_t k_runs = MOETIER_FUZZ_RUNS;
constexpr std::uint64_t k_seed = 7;
constexpr const char* k_crash_file = "fuzz_" MOETIER_FUZZ_NAME ".crash";

// What the target is looking at, for the handler of its abort.
const std::uint8_t* running = nullptr;
std::size_t running_bytes = 0;

void keep_input(int signal) {
  constexpr std::string_view k_text = "fuzz: the input is in fuzz_" MOETIER_FUZZ_NAME
                                      ".crash; run fuzz_" MOETIER_FUZZ_NAME " with that file\n";
  const int file = ::open(k_crash_file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const bool kept =
      file >= 0 && ::write(file, running, running_bytes) == static_cast<ssize_t>(running_bytes);
  if (kept && ::write(STDERR_FILENO, k_text.data(), k_text.size()) < 0) ::_exit(1);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void feed(const input& bytes) {
  running = bytes.data();
  running_bytes = bytes.size();
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

input read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<input> findings() {
  std::vector<input> all;
  const std::filesystem::path folder = MOETIER_FUZZ_FINDINGS;
  if (!std::filesystem::exists(folder)) return all;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    all.push_back(read_file(entry.path()));
  }
  return all;
}

std::uint64_t number_of(const char* text) {
  std::uint64_t n = 0;
  std::from_chars(text, text + std::strlen(text), n);
  return n;
}

int drive(int argc, char** argv) {
  std::uint64_t runs = k_runs;
  std::uint64_t seed = k_seed;
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--runs" && i + 1 < argc) {
      runs = number_of(argv[++i]);
    } else if (word == "--seed" && i + 1 < argc) {
      seed = number_of(argv[++i]);
    } else {
      feed(read_file(argv[i]));
      ++files;
    }
  }
  if (files > 0) return 0;
  std::vector<input> corpus = seeds();
  check(!corpus.empty(), "the target has no seeds");
  const std::vector<input> past = findings();
  corpus.insert(corpus.end(), past.begin(), past.end());
  for (const input& bytes : corpus) feed(bytes);
  mutator mutations(seed);
  for (std::uint64_t i = 0; i < runs; ++i) {
    feed(mutations.change(corpus[mutations.below(corpus.size())], corpus));
  }
  std::printf("%zu inputs, %zu of them past findings, %llu mutations of seed %llu\n", corpus.size(),
              past.size(), static_cast<unsigned long long>(runs),
              static_cast<unsigned long long>(seed));
  return 0;
}

}  // namespace
}  // namespace moetier::fuzz

int main(int argc, char** argv) {
  static std::array<std::byte, 64 * 1024> stack;  // of the handler: the other may have overflowed
  const stack_t apart{.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
  ::sigaltstack(&apart, nullptr);
  struct sigaction handler {};
  handler.sa_handler = moetier::fuzz::keep_input;
  handler.sa_flags = SA_ONSTACK;
  for (const int fatal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    ::sigaction(fatal, &handler, nullptr);
  }
#if !defined(MOETIER_FUZZ_SANITIZED)  // a sanitizer's shadow is larger than any limit
  const rlimit memory{moetier::fuzz::k_memory_bytes_max, moetier::fuzz::k_memory_bytes_max};
  ::setrlimit(RLIMIT_AS, &memory);
#endif
  return moetier::fuzz::drive(argc, argv);
}
