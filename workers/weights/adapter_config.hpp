#pragma once
// adapter_config.json of a PEFT directory: the rank, the scale, and a refusal of every key that
// changes the mathematics beyond W + scale·B·A on whole projections. Thread: any (pure but for the
// read).

#include <cstdint>
#include <string>

#include "schemas/base/error.hpp"

namespace moetier::workers {

struct adapter_config {
  std::uint32_t rank = 0;  // 1..kernels::k_lora_rank_max
  float scale = 0;         // lora_alpha / r
};

// reason::file_unreadable, file_malformed, limit_exceeded, or lora_unsupported naming the key.
expected<adapter_config> read_adapter_config(const std::string& file);

}  // namespace moetier::workers
