// What lies on a coordinator's disk and travels in a PREPARE: the durable record and a placement's
// canonical bytes. The first byte: 1 = make the record's check fit.

#include <cstring>

#include "coordinator/core/record.hpp"
#include "eplb/placement.hpp"
#include "schemas/base/checksum.hpp"
#include "tests/eplb/small_placement.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace moetier::fuzz {
namespace {

void read_placement(std::span<const std::uint8_t> bytes) {
  const auto p = eplb::placement::from_canonical(std::as_bytes(bytes));
  if (!p) return;
  const auto again = p->canonical_bytes();
  check(again.size() == bytes.size() && std::memcmp(again.data(), bytes.data(), again.size()) == 0,
        "two texts of bytes are one placement");
  for (std::size_t layer = 0; layer < p->layers().size(); ++layer) {
    for (std::uint32_t e = 0; e < p->experts(); ++e) {
      for (const std::uint32_t d : p->replicas(layer, e)) {
        check(p->span_of(d) < p->spans().size(), "a replica on no worker");
        check(p->layers()[layer].experts[d] == static_cast<std::int32_t>(e),
              "a replica of another expert");
      }
    }
  }
}

}  // namespace

void run(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return;
  input body(bytes.begin() + 1, bytes.end());
  read_placement(body);
  if ((bytes[0] & 1) != 0 && body.size() >= 4) {
    const auto head = std::as_bytes(std::span(body)).first(body.size() - 4);
    const std::uint32_t fits = crc32c(head);
    std::memcpy(body.data() + head.size(), &fits, 4);
  }
  const auto record = coordinator::record_from_bytes(body);
  if (!record) return;
  check(coordinator::to_bytes(*record) == body, "two texts of bytes are one record");
  read_placement(record->placement);
}

std::vector<input> seeds() {
  const auto placed = eplb::default_placement(6, eplb::layers_of(2), eplb::spans_of({4, 4}));
  const auto canonical = placed->canonical_bytes();
  const auto* first = reinterpret_cast<const std::uint8_t*>(canonical.data());
  coordinator::record record;
  record.epoch = epoch_number(3);
  record.generation = generation_number(1);
  record.placement.assign(first, first + canonical.size());
  record.checksums.assign(16, 77);
  record.resolution = "{}";
  std::vector<input> all;
  for (const input& body : {record.placement, coordinator::to_bytes(record),
                            coordinator::to_bytes(coordinator::record{})}) {
    all.push_back(body);
    all.back().insert(all.back().begin(), 1);
  }
  return all;
}

}  // namespace moetier::fuzz
