#pragma once
// What one fuzz target is: a function that takes any bytes, and the inputs it starts from. A target
// is one file with both. Around it stands either libFuzzer (preset `fuzz`, clang) or driver.cpp
// (any compiler, a fixed number of mutations); entry.cpp judges each input for both. A finding is
// an abort: a failed assertion, a broken property (check), a sanitizer's report, an exception, or
// an input that takes too long. Thread: owner.

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

namespace moetier::fuzz {

using input = std::vector<std::uint8_t>;

// Of each target.
void run(std::span<const std::uint8_t> bytes);
std::vector<input> seeds();

// A property that must hold for every input.
void check(bool holds, const char* what) noexcept;

inline input input_of(std::string_view text) { return {text.begin(), text.end()}; }
inline std::string_view text_of(std::span<const std::uint8_t> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace moetier::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
