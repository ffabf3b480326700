#pragma once
// Structs that cross the C border start with size and version. Read: a caller's older struct gets
// defaults for what it lacks, a newer one is taken only if all that we do not know is zero. Write:
// a caller gets as much as its struct holds. Neither takes a size that cuts a field in two.
// Thread: any.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <fmt/core.h>

#include "schemas/base/error.hpp"
#include "transport/client/abi/moetier.h"
#include "transport/client/abi/struct_fields.hpp"

namespace moetier::abi {

// No struct of this interface will ever be longer; a longer one is not a struct of it.
inline constexpr std::uint32_t k_struct_bytes_max = 65536;

// Checks size, version and unknown bytes; size is then what the caller's struct holds.
expected<std::uint32_t> check_struct(const char* name, const void* given, std::size_t known_bytes);

// Checks that a struct of `size` bytes holds only whole fields of `known`.
template <class T>
expected<void> check_cut(const char* name, const T& known, std::uint32_t size) {
  if (size >= sizeof(T) || is_boundary(known, size)) return {};
  return fail(reason::protocol_version,
              fmt::format("{} of {} in {} bytes", MOETIER_VERSION, name, size),
              "sizes that end where a field ends");
}

template <class T>
expected<T> read_struct(const char* name, const T* given) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto size = check_struct(name, given, sizeof(T));
  if (!size) return unexpected_error(size.error());
  T known{};
  if (auto ok = check_cut(name, known, *size); !ok) return unexpected_error(ok.error());
  std::memcpy(&known, given, std::min<std::size_t>(*size, sizeof(T)));
  return known;
}

// Absent options are all defaults.
template <class T>
expected<T> read_optional_struct(const char* name, const T* given) {
  if (given == nullptr) return T{};
  return read_struct(name, given);
}

// Writes all of `value` that the caller's struct holds; bytes that we do not know become zero.
template <class T>
expected<void> write_struct(const char* name, T* given, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto size = check_struct(name, given, k_struct_bytes_max);
  if (!size) return unexpected_error(size.error());
  if (auto ok = check_cut(name, value, *size); !ok) return ok;
  value.size = *size;
  value.version = MOETIER_VERSION;
  std::memcpy(given, &value, std::min<std::size_t>(*size, sizeof(T)));
  if (*size > sizeof(T)) {
    std::memset(reinterpret_cast<char*>(given) + sizeof(T), 0, *size - sizeof(T));
  }
  return {};
}

}  // namespace moetier::abi
