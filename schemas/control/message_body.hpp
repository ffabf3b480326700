#pragma once
// One control message as one Cap'n Proto segment and back: the part of the codec between the
// envelopes and the values. Called by codec.cpp alone. What it reads is hostile: nesting,
// traversal, counts, lengths, enumerations and texts are checked before they are used, and nothing
// larger than the bytes at hand is ever allocated. Thread: any.

#include <cstdint>
#include <span>
#include <vector>

#include "schemas/base/error.hpp"
#include "schemas/control/messages.hpp"

namespace moetier::control {

// A whole number of 8-byte words, never empty.
std::vector<std::uint8_t> to_segment(const message& m);

// `kind` = place of the struct in the schema, 1 and up. reason::frame_malformed names the field.
// Requires: `segment` is aligned to 8 bytes.
expected<message> from_segment(std::uint16_t kind, std::span<const std::uint8_t> segment);

}  // namespace moetier::control
