#include "coordinator/core/record.hpp"

#include <cstring>
#include <string_view>

#include "schemas/base/checksum.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::coordinator {
namespace {

// "MTRECORD", version, length of what follows, then the fields in order, CRC32C of all before it.
constexpr std::string_view k_magic = "MTRECORD";
constexpr std::uint32_t k_version = 3;
constexpr std::size_t k_head_bytes = 8 + 4 + 8;
constexpr std::size_t k_record_bytes_max = std::size_t{512} * 1024 * 1024;

void put(std::vector<std::uint8_t>& to, std::uint64_t v, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) to.push_back(static_cast<std::uint8_t>(v >> (8 * i)));
}

// Reads little-endian numbers; after a short read everything is 0 and good() is false.
class cursor final {
 public:
  explicit cursor(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t v = 0;
    const auto from = take(bytes);
    for (std::size_t i = 0; i < from.size(); ++i) v |= std::uint64_t{from[i]} << (8 * i);
    return v;
  }
  std::span<const std::uint8_t> take(std::uint64_t bytes) {
    if (bytes > bytes_.size()) {
      good_ = false;
      bytes_ = {};
      return {};
    }
    const auto head = bytes_.first(static_cast<std::size_t>(bytes));
    bytes_ = bytes_.subspan(head.size());
    return head;
  }
  bool at_end() const { return good_ && bytes_.empty(); }
  std::size_t left() const { return bytes_.size(); }

 private:
  std::span<const std::uint8_t> bytes_;
  bool good_ = true;
};

}  // namespace

std::vector<std::uint8_t> to_bytes(const record& r) {
  std::vector<std::uint8_t> body;
  body.reserve(128 + r.placement.size() + 8 * r.checksums.size());
  put(body, r.epoch.value, 8);
  put(body, r.generation.value, 8);
  put(body, r.plan.value, 8);
  put(body, r.model_fingerprint, 8);
  put(body, r.checkpoint_digest, 8);
  put(body, r.next_session, 4);
  put(body, r.shared_experts, 4);
  put(body, r.shared_digest, 8);
  put(body, r.routing_digest, 8);
  put(body, r.resolution.size(), 4);
  body.insert(body.end(), r.resolution.begin(), r.resolution.end());
  put(body, r.placement.size(), 8);
  body.insert(body.end(), r.placement.begin(), r.placement.end());
  put(body, r.checksums.size(), 8);
  for (const std::uint64_t c : r.checksums) put(body, c, 8);

  std::vector<std::uint8_t> all(k_magic.begin(), k_magic.end());
  put(all, k_version, 4);
  put(all, body.size(), 8);
  all.insert(all.end(), body.begin(), body.end());
  put(all, crc32c(std::as_bytes(std::span(all))), 4);
  return all;
}

expected<record> record_from_bytes(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < k_head_bytes + 4 || bytes.size() > k_record_bytes_max) {
    return fail(reason::state_unusable, "a record is cut short");
  }
  if (std::memcmp(bytes.data(), k_magic.data(), k_magic.size()) != 0) {
    return fail(reason::state_unusable, "a file is not a record");
  }
  cursor check(bytes.last(4));
  if (crc32c(std::as_bytes(bytes.first(bytes.size() - 4))) != check.number(4)) {
    return fail(reason::state_unusable, "a record fails its checksum");
  }
  cursor in(bytes.subspan(k_magic.size(), bytes.size() - k_magic.size() - 4));
  if (in.number(4) != k_version)
    return fail(reason::state_unusable, "a record has another version than this build's");
  if (in.number(8) != in.left()) return fail(reason::state_unusable, "a record's length is wrong");
  record r;
  r.epoch = epoch_number(in.number(8));
  r.generation = generation_number(in.number(8));
  r.plan = plan_hash(in.number(8));
  r.model_fingerprint = in.number(8);
  r.checkpoint_digest = in.number(8);
  r.next_session = static_cast<std::uint32_t>(in.number(4));
  r.shared_experts = static_cast<std::uint32_t>(in.number(4));
  r.shared_digest = in.number(8);
  r.routing_digest = in.number(8);
  const auto resolution = in.take(in.number(4));
  r.resolution.assign(resolution.begin(), resolution.end());
  const auto placement = in.take(in.number(8));
  r.placement.assign(placement.begin(), placement.end());
  const std::uint64_t count = in.number(8);
  if (count != in.left() / 8) return fail(reason::state_unusable, "a record's length is wrong");
  r.checksums.reserve(static_cast<std::size_t>(count));
  for (std::uint64_t i = 0; i < count; ++i) r.checksums.push_back(in.number(8));
  if (!in.at_end()) return fail(reason::state_unusable, "a record's length is wrong");
  return r;
}

}  // namespace moetier::coordinator
