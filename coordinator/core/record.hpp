#pragma once
// The durable record D: the one truth that survives a coordinator. (epoch, generation, plan hash,
// plan bytes, reference checksums), written by compare-and-set on the epoch. The core only makes
// and reads the value; record_store.hpp keeps it on disk. Thread: any (a value).

#include <cstdint>
#include <span>
#include <vector>

#include "schemas/base/error.hpp"
#include "schemas/base/ids.hpp"

namespace moetier::coordinator {

struct record {
  epoch_number epoch;
  generation_number generation;  // 0 = no plan decided yet
  plan_hash plan;
  std::vector<std::uint8_t> placement;  // canonical bytes; names workers and their slots
  std::uint64_t model_fingerprint = 0;
  std::uint64_t checkpoint_digest = 0;
  std::vector<std::uint64_t> checksums;  // by (layer index, dense position), XXH3-64 of pages as
                                         // `resolution` lays them out
  std::string resolution;            // canonical resolution report; empty before there is a plan
  std::uint32_t shared_experts = 0;  // pseudo-experts that every worker holds beside its slots
  std::uint64_t shared_digest = 0;   // XXH3-64 of their checksums; 0 = none
  std::uint64_t routing_digest = 0;  // of what chooses experts: routers, biases, tables
  std::uint32_t next_session = 1;    // session ids are never reused

  bool operator==(const record&) const = default;
};

std::vector<std::uint8_t> to_bytes(const record& r);  // with magic, version, CRC32C
expected<record> record_from_bytes(std::span<const std::uint8_t> bytes);

}  // namespace moetier::coordinator
