#pragma once
// Where the fields of each struct of moetier.h begin and end, so that no struct is read or written
// whose size cuts a field in two: half a pointer is an address nobody gave. A field that is missing
// here does not compile. Thread: any.

#include <cstdint>

#include "transport/client/abi/moetier.h"

namespace moetier::abi {

// Whether one of `fields` begins or ends `size` bytes into `whole`.
template <class T, class... Field>
bool is_between(std::uint32_t size, const T& whole, const Field&... fields) noexcept {
  const auto at = [&](const void* place) {
    return static_cast<const char*>(place) - reinterpret_cast<const char*>(&whole);
  };
  return ((at(&fields) == size || at(&fields + 1) == size) || ...);
}

inline bool is_boundary(const moetier_tls& s, std::uint32_t size) noexcept {
  const auto& [a, b, c, d, e, f] = s;
  return is_between(size, s, a, b, c, d, e, f);
}

inline bool is_boundary(const moetier_service_options& s, std::uint32_t size) noexcept {
  const auto& [a, b, c, d, e, f, g, h] = s;
  return is_between(size, s, a, b, c, d, e, f, g, h);
}

inline bool is_boundary(const moetier_model_info& s, std::uint32_t size) noexcept {
  const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v, w] = s;
  return is_between(size, s, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v, w);
}

inline bool is_boundary(const moetier_session_options& s, std::uint32_t size) noexcept {
  const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v, w, x] = s;
  return is_between(size, s, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v, w, x);
}

inline bool is_boundary(const moetier_step_options& s, std::uint32_t size) noexcept {
  const auto& [a, b, c, d, e, f, g, h] = s;
  return is_between(size, s, a, b, c, d, e, f, g, h);
}

inline bool is_boundary(const moetier_end_options& s, std::uint32_t size) noexcept {
  const auto& [a, b, c] = s;
  return is_between(size, s, a, b, c);
}

inline bool is_boundary(const moetier_step_report& s, std::uint32_t size) noexcept {
  const auto& [a, b, c, d, e, f, g, h, i] = s;
  return is_between(size, s, a, b, c, d, e, f, g, h, i);
}

inline bool is_boundary(const moetier_call& s, std::uint32_t size) noexcept {
  const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = s;
  return is_between(size, s, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);
}

inline bool is_boundary(const moetier_result& s, std::uint32_t size) noexcept {
  const auto& [a, b, c, d, e, f, g, h] = s;
  return is_between(size, s, a, b, c, d, e, f, g, h);
}

inline bool is_boundary(const moetier_event& s, std::uint32_t size) noexcept {
  const auto& [a, b, c, d, e, f] = s;
  return is_between(size, s, a, b, c, d, e, f);
}

inline bool is_boundary(const moetier_stats_snapshot& s, std::uint32_t size) noexcept {
  const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v] = s;
  return is_between(size, s, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u, v);
}

}  // namespace moetier::abi
