#pragma once
// The memory of one (source, worker) pair at one end: for each bank a header, a region that goes
// out and a region that comes in, and one header more for the farewell. It is made when the pair is
// attached and handed to the carrier, which keeps it for as long as a request of the library may
// still touch it; so the pair can be detached at any moment. Regions are zero at first: no padding
// byte ever shows what the process held before. Thread: owner; the regions' bytes belong to whom
// the exchange's state names.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "schemas/base/error.hpp"
#include "schemas/wire/wire_header.hpp"
#include "transport/communication.hpp"

namespace moetier::transport {

class bank_memory final {
 public:
  struct sizes {
    std::uint32_t banks = 0;
    std::size_t out_bytes = 0;
    std::size_t in_bytes = 0;
  };

  // `watch` (optional) is told of the whole block.
  static expected<std::shared_ptr<bank_memory>> make(const sizes& wanted,
                                                     std::shared_ptr<RowMemoryWatch> watch = {});
  ~bank_memory();
  bank_memory(const bank_memory&) = delete;
  bank_memory& operator=(const bank_memory&) = delete;

  // Requires: bank <= sizes::banks; the last one is the farewell's and has empty regions.
  std::span<std::byte, k_wire_header_bytes> head(std::uint32_t bank) noexcept;
  std::span<std::byte> out(std::uint32_t bank) noexcept;
  std::span<std::byte> in(std::uint32_t bank) noexcept;

  // Never unmap: a peer that lives may still store here.
  void leak() noexcept { leaked_ = true; }

 private:
  bank_memory(const sizes& wanted, std::byte* base, std::size_t bytes,
              std::shared_ptr<RowMemoryWatch> watch) noexcept
      : sizes_(wanted), base_(base), bytes_(bytes), watch_(std::move(watch)) {}
  std::byte* region(std::uint32_t bank) noexcept;

  sizes sizes_;
  std::byte* base_;
  std::size_t bytes_;
  std::shared_ptr<RowMemoryWatch> watch_;
  bool leaked_ = false;
};

}  // namespace moetier::transport
