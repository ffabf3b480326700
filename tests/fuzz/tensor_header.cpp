// Headers of safetensors files. The first four bytes are how many bytes of data follow the header.

#include "schemas/safetensors/tensor_header.hpp"

#include <algorithm>
#include <cstring>

#include "tests/fuzz/fuzz_target.hpp"

namespace moetier::fuzz {
namespace {

input seed_of(std::uint32_t data_bytes, std::string_view text) {
  input seed;
  seed.reserve(4 + text.size());
  seed.resize(4);
  std::memcpy(seed.data(), &data_bytes, 4);
  seed.insert(seed.end(), text.begin(), text.end());
  return seed;
}

void check_tensors(const tensor_header& header, std::uint64_t data_bytes) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places;
  for (const tensor_info& t : header.tensors) {
    check(t.type != nullptr && t.rank <= k_tensor_rank_max, "a tensor without type or rank");
    check(t.begin <= t.end && t.end <= data_bytes, "a tensor beyond the data");
    std::uint64_t bits = t.type->bits;
    for (const std::uint64_t size : t.shape()) bits *= size;
    check(t.bytes() * 8 == bits, "a tensor of another size than its shape");
    check(header.find(t.name) == &t, "a tensor cannot be found by its name");
    shape_text(*t.type, t.shape());
    if (t.begin != t.end) places.push_back({t.begin, t.end});
  }
  std::sort(places.begin(), places.end());
  std::uint64_t covered = 0;
  for (const auto& [begin, end] : places) {
    check(begin == covered, "a byte that no tensor or two tensors have");
    covered = end;
  }
  check(covered == data_bytes, "data behind the last tensor");
}

}  // namespace

void run(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < 4) return;
  std::uint32_t data_bytes = 0;
  std::memcpy(&data_bytes, bytes.data(), 4);
  const auto header = parse_tensor_header(text_of(bytes.subspan(4)), data_bytes, "f.safetensors");
  if (header) check_tensors(*header, data_bytes);
}

std::vector<input> seeds() {
  return {
      seed_of(0, "{}"),
      seed_of(8, R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}  )"),
      seed_of(24, R"({"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[2,4],)"
                  R"("data_offsets":[0,16]},"b":{"dtype":"F8_E4M3","shape":[2,4],)"
                  R"("data_offsets":[16,24]}})"),
      seed_of(5, R"({"s":{"dtype":"U8","shape":[],"data_offsets":[0,1]},"e":{"dtype":"I64",)"
                 R"("shape":[0,7],"data_offsets":[1,1]},"t":{"dtype":"BOOL","shape":[1,1,4],)"
                 R"("data_offsets":[1,5]}})"),
      seed_of(3, R"({"\u00e9\"x":{"shape":[3],"data_offsets":[0,3],"dtype":"I8"}})"),
  };
}

}  // namespace moetier::fuzz
