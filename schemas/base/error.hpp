#pragma once
// An error as data: status, closed reason, one sentence made from the reason's template, and what a
// caller may do. Control paths return `expected<T>`; data paths return a `status`. The sentence
// holds numbers, glossary ids and the caller's own values only, never an address, a path the caller
// did not give, or another session's data. Thread: any.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <tl/expected.hpp>

#include "schemas/base/reason.hpp"
#include "schemas/base/status.hpp"

namespace moetier {

struct error {
  status code = status::internal;
  reason why = reason::internal_error;
  std::string text;                  // one sentence, no trailing newline
  std::uint64_t request_id = 0;      // 0 = not tied to a request
  std::uint64_t retry_after_ns = 0;  // 0 = no hint
};

template <class T>
using expected = tl::expected<T, error>;
using unexpected_error = tl::unexpected<error>;

namespace detail {
error make_error(reason why, fmt::string_view form, fmt::format_args args);
}

// The error of `why`: its status and its template from the reason table, filled with `args` in
// order. Requires: args fit the template of `why` (a mismatch is reported as INTERNAL, never
// thrown).
template <class... Args>
error make_error(reason why, const Args&... args) {
  return detail::make_error(why, template_of(why), fmt::make_format_args(args...));
}

// make_error wrapped for `return fail(reason::x, ...)` from a function that returns expected<T>.
template <class... Args>
unexpected_error fail(reason why, const Args&... args) {
  return unexpected_error(make_error(why, args...));
}

}  // namespace moetier
