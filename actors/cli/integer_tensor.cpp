#include "actors/cli/integer_tensor.hpp"

#include <cstring>
#include <limits>

#include <fmt/core.h>

#include "schemas/file/printable.hpp"

namespace moetier::cli {
namespace {

constexpr std::uint64_t k_bytes_max = std::uint64_t{1} << 30;  // nine times that in memory

template <class Integer>
bool widen(const std::vector<std::byte>& bytes, std::vector<std::int64_t>& into) {
  into.resize(bytes.size() / sizeof(Integer));
  for (std::size_t i = 0; i < into.size(); ++i) {
    Integer v{};
    std::memcpy(&v, &bytes[i * sizeof(Integer)], sizeof(Integer));
    if constexpr (std::is_same_v<Integer, std::uint64_t>) {
      if (v > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return false;
    }
    into[i] = static_cast<std::int64_t>(v);
  }
  return true;
}

}  // namespace

bool is_integer(const tensor_info& t) noexcept {
  return !t.type->name.empty() && (t.type->name[0] == 'U' || t.type->name[0] == 'I');
}

expected<std::vector<std::int64_t>> read_integers(const tensor_file& file, const tensor_info& t) {
  const auto refuse = [&](const std::string& what) {
    return fail(reason::file_malformed, file.name(),
                fmt::format("tensor {} {}", printable(t.name), what));
  };
  if (t.bytes() > k_bytes_max)
    return fail(reason::limit_exceeded,
                fmt::format("the size of tensor {} in bytes", printable(t.name)), t.bytes(),
                k_bytes_max);
  std::vector<std::byte> bytes(t.bytes());
  if (auto read = file.read(t, bytes); !read) return tl::unexpected(read.error());
  std::vector<std::int64_t> out;
  const std::string_view type = t.type->name;
  bool fits = true;
  if (type == "U8") {
    fits = widen<std::uint8_t>(bytes, out);
  } else if (type == "I8") {
    fits = widen<std::int8_t>(bytes, out);
  } else if (type == "U16") {
    fits = widen<std::uint16_t>(bytes, out);
  } else if (type == "I16") {
    fits = widen<std::int16_t>(bytes, out);
  } else if (type == "U32") {
    fits = widen<std::uint32_t>(bytes, out);
  } else if (type == "I32") {
    fits = widen<std::int32_t>(bytes, out);
  } else if (type == "U64") {
    fits = widen<std::uint64_t>(bytes, out);
  } else if (type == "I64") {
    fits = widen<std::int64_t>(bytes, out);
  } else {
    return refuse(fmt::format("is {}; whole numbers are needed (U8 to U64, I8 to I64)", type));
  }
  if (!fits) return refuse("has a number beyond 63 bits");
  return out;
}

}  // namespace moetier::cli
