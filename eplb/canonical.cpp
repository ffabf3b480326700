#include "eplb/canonical.hpp"

#include <cstring>

namespace moetier::eplb {

void canonical_writer::u32(std::uint32_t v) {
  for (int shift = 0; shift < 32; shift += 8) bytes_.push_back(static_cast<std::byte>(v >> shift));
}

void canonical_writer::text(std::string_view t) {
  u32(static_cast<std::uint32_t>(t.size()));
  for (const char c : t) bytes_.push_back(static_cast<std::byte>(c));
}

std::uint32_t canonical_reader::u32() noexcept {
  if (bytes_.size() < 4) {
    good_ = false;
    bytes_ = {};
    return 0;
  }
  std::uint32_t v = 0;
  for (int i = 3; i >= 0; --i)
    v = (v << 8) | static_cast<std::uint32_t>(bytes_[static_cast<std::size_t>(i)]);
  bytes_ = bytes_.subspan(4);
  return v;
}

std::uint16_t canonical_reader::u16() noexcept {
  const std::uint32_t v = u32();
  if (v > 0xffff) good_ = false;
  return static_cast<std::uint16_t>(v);
}

std::string canonical_reader::text(std::size_t bytes_max) {
  const std::uint32_t size = u32();
  if (!good_ || size > bytes_max || size > bytes_.size()) {
    good_ = false;
    bytes_ = {};
    return {};
  }
  std::string t(size, '\0');
  if (size > 0) std::memcpy(t.data(), bytes_.data(), size);
  bytes_ = bytes_.subspan(size);
  return t;
}

}  // namespace moetier::eplb
