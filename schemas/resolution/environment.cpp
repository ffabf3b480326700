#include "schemas/resolution/environment.hpp"

#include <fmt/core.h>

#include "schemas/base/checksum.hpp"
#include "schemas/resolution/canonical_fields.hpp"

namespace moetier::resolution {

std::string canonical_text(const environment& e) {
  canonical_fields text("moetier environment 1");
  walk(e, text);
  return text.take();
}

std::string fingerprint_of(const environment& e) {
  const std::string text = canonical_text(e);
  std::string hex;
  for (const std::byte b : sha256(std::as_bytes(std::span(text.data(), text.size()))))
    hex += fmt::format("{:02x}", static_cast<unsigned>(b));
  return hex;
}

}  // namespace moetier::resolution
