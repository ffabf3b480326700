#pragma once
// Changes inputs from a seed of its own, without a look at what they do: flips, bounds of integers,
// pieces that come, go, repeat or are taken from another input. Thread: owner.

#include <cstdint>
#include <random>
#include <span>

#include "tests/fuzz/fuzz_target.hpp"

namespace moetier::fuzz {

class mutator final {
 public:
  explicit mutator(std::uint64_t seed) : random_(seed) {}

  // One to eight changes of `from`. Requires: `others` is not empty.
  input change(const input& from, std::span<const input> others);
  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }

 private:
  void change_once(input& bytes, std::span<const input> others);
  void put_number(input& bytes);
  void put_digit(input& bytes);  // in a text

  std::mt19937_64 random_;
};

}  // namespace moetier::fuzz
