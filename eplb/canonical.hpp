#pragma once
// The canonical byte form of plans: little-endian u32 words and length-prefixed texts, so that
// equal values give equal bytes and one hash. The reader never throws and never reads past its end:
// after a short read good() stays false and every value is zero. Thread: owner.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace moetier::eplb {

class canonical_writer final {
 public:
  void u32(std::uint32_t v);
  void text(std::string_view t);
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class canonical_reader final {
 public:
  explicit canonical_reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint32_t u32() noexcept;
  std::uint16_t u16() noexcept;  // a u32 word that must fit; else not good
  std::string text(std::size_t bytes_max);
  bool good() const noexcept { return good_; }
  std::size_t left() const noexcept { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  bool good_ = true;
};

}  // namespace moetier::eplb
