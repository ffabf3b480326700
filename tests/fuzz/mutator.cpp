#include "tests/fuzz/mutator.hpp"

#include <algorithm>
#include <array>

namespace moetier::fuzz {
namespace {

constexpr std::size_t k_input_bytes_max = 64 * 1024;

}  // namespace

input mutator::change(const input& from, std::span<const input> others) {
  input bytes = from;
  for (std::size_t i = 1 + below(8); i > 0; --i) change_once(bytes, others);
  if (bytes.size() > k_input_bytes_max) bytes.resize(k_input_bytes_max);
  return bytes;
}

void mutator::change_once(input& bytes, std::span<const input> others) {
  const auto at = [&](std::size_t place) {
    return bytes.begin() + static_cast<std::ptrdiff_t>(place);
  };
  const std::size_t begin = below(bytes.size());
  const std::size_t length =
      bytes.empty() ? 0 : 1 + below(std::min(bytes.size() - begin, std::size_t{32}));
  switch (below(10)) {
    case 0:
      if (!bytes.empty()) bytes[begin] ^= static_cast<std::uint8_t>(1U << below(8));
      return;
    case 1:
      if (!bytes.empty()) bytes[begin] = static_cast<std::uint8_t>(random_());
      return;
    case 2: return put_number(bytes);
    case 3: bytes.erase(at(begin), at(begin + length)); return;
    case 4: {
      const input copy(at(begin), at(begin + length));
      const std::size_t to = below(bytes.size() + 1);
      bytes.insert(at(to), copy.begin(), copy.end());
      return;
    }
    case 5: {
      const input copy(at(begin), at(begin + length));
      std::copy(copy.begin(), copy.end(), at(below(bytes.size() - length + 1)));
      return;
    }
    case 6: {
      const input& other = others[below(others.size())];
      const std::size_t from = below(other.size());
      const std::size_t count = other.empty() ? 0 : 1 + below(other.size() - from);
      const auto first = other.begin() + static_cast<std::ptrdiff_t>(from);
      bytes.insert(at(below(bytes.size() + 1)), first, first + static_cast<std::ptrdiff_t>(count));
      return;
    }
    case 7: bytes.insert(at(below(bytes.size() + 1)), static_cast<std::uint8_t>(random_())); return;
    default: bytes.resize(below(bytes.size() + 1)); return;
  }
}

void mutator::put_digit(input& bytes) {
  const std::size_t from = below(bytes.size());
  const auto digit = std::find_if(bytes.begin() + static_cast<std::ptrdiff_t>(from), bytes.end(),
                                  [](std::uint8_t b) { return b >= '0' && b <= '9'; });
  if (digit != bytes.end()) *digit = static_cast<std::uint8_t>('0' + below(10));
}

void mutator::put_number(input& bytes) {
  constexpr std::array<std::uint64_t, 10> k_bounds = {0,
                                                      1,
                                                      0x7f,
                                                      0xff,
                                                      0x7fff,
                                                      0xffff,
                                                      0x7fffffff,
                                                      0xffffffff,
                                                      0x7fffffffffffffff,
                                                      0xffffffffffffffff};
  const std::size_t width = std::size_t{1} << below(4);
  if (bytes.size() < width) return;
  const std::size_t place = below(bytes.size() - width + 1);
  const std::uint64_t number = k_bounds[below(k_bounds.size())] + below(3) - 1;
  for (std::size_t i = 0; i < width; ++i) {
    bytes[place + i] = static_cast<std::uint8_t>(number >> (8 * i));
  }
}

}  // namespace moetier::fuzz
