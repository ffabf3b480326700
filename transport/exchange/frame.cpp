#include "transport/exchange/frame.hpp"

#include <algorithm>

namespace moetier::transport {

wire_header header_of(const exchange_key& key) noexcept {
  wire_header h;
  h.flags = key.flags;
  h.return_mode = key.return_mode;
  h.attempt = key.attempt;
  h.epoch = key.epoch.value;
  h.generation = key.generation.value;
  h.resolution_id = key.resolution_id;
  h.plan_hash = key.plan.value;
  h.step = key.step;
  h.session = key.session.value;
  h.layer = key.layer.value;
  h.micro_batch = key.micro_batch;
  h.chunk = key.chunk;
  h.chunk_count = key.chunk_count;
  h.repeat_idx = key.repeat_idx;
  h.repeat_count = key.repeat_count;
  return h;
}

exchange_key key_of(const wire_header& h) noexcept {
  return {.session = session_id{h.session},
          .step = h.step,
          .attempt = h.attempt,
          .layer = layer_id{h.layer},
          .micro_batch = h.micro_batch,
          .chunk = h.chunk,
          .chunk_count = h.chunk_count,
          .repeat_idx = h.repeat_idx,
          .repeat_count = h.repeat_count,
          .epoch = epoch_number{h.epoch},
          .generation = generation_number{h.generation},
          .plan = plan_hash{h.plan_hash},
          .resolution_id = h.resolution_id,
          .return_mode = h.return_mode,
          .flags = h.flags};
}

void write_head(const wire_header& header, bank_memory& memory, std::uint32_t bank) noexcept {
  const wire_image image = encode_header(header);
  std::copy(image.begin(), image.end(), memory.head(bank).begin());
}

bool answers(const wire_header& header, const exchange_key& key) noexcept {
  exchange_key echoed = key_of(header);
  echoed.flags = key.flags;
  if (status_in(header) != status::ok) echoed.generation = key.generation;
  return echoed == key;
}

status status_in(const wire_header& header) noexcept {
  const auto given = static_cast<status>(header.flags);
  return status_name(given) == "UNKNOWN" ? status::internal : given;
}

size_fault check_sizes(const wire_header& header, std::uint32_t rows_max, std::uint32_t row_bytes,
                       std::size_t payload_bytes_seen) noexcept {
  if (header.rows > rows_max) return size_fault::rows;
  if (header.row_bytes != row_bytes) return size_fault::row_bytes;
  const std::uint64_t expected_bytes = std::uint64_t{header.rows} * header.row_bytes;  // < 2^64
  if (header.payload_bytes != expected_bytes || payload_bytes_seen != expected_bytes)
    return size_fault::payload_bytes;
  return size_fault::none;
}

}  // namespace moetier::transport
