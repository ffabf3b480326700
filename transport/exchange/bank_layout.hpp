#pragma once
// Where things lie in the memory of a pair, as offsets: what the carrier keeps for itself, the
// headers, then the banks: out, in, out, in, ... Both ends of a carrier whose peers read each
// other's memory go by it. Pure. Thread: any.

#include <cstddef>
#include <cstdint>

#include "schemas/wire/wire_header.hpp"

namespace moetier::transport {

struct bank_layout {
  std::uint32_t banks = 0;
  std::size_t out_bytes = 0;
  std::size_t in_bytes = 0;
  std::size_t carrier_bytes = 0;  // in front; a multiple of a line

  // Of a bank: its own, the farewell's (bank == banks), and from there on the one that says that
  // the source gives it up.
  constexpr std::uint32_t heads() const noexcept { return 2 * banks + 1; }
  constexpr std::uint32_t farewell() const noexcept { return banks; }
  constexpr std::uint32_t give_up_of(std::uint32_t bank) const noexcept { return banks + 1 + bank; }

  constexpr std::size_t head_at(std::uint32_t head) const noexcept {
    return carrier_bytes + std::size_t{k_wire_header_bytes} * head;
  }
  constexpr std::size_t out_at(std::uint32_t bank) const noexcept {
    return head_at(heads()) + bank * (whole_lines(out_bytes) + whole_lines(in_bytes));
  }
  constexpr std::size_t in_at(std::uint32_t bank) const noexcept {
    return out_at(bank) + whole_lines(out_bytes);
  }
  constexpr std::size_t bytes() const noexcept { return out_at(banks); }

 private:
  static constexpr std::size_t k_line_bytes = 128;  // no shared cache line, nor a prefetched pair
  static_assert(k_wire_header_bytes % k_line_bytes == 0);

  static constexpr std::size_t whole_lines(std::size_t bytes) noexcept {
    return (bytes + k_line_bytes - 1) / k_line_bytes * k_line_bytes;
  }
};

}  // namespace moetier::transport
