#include "schemas/base/error.hpp"

#include <fmt/format.h>

namespace moetier::detail {

error make_error(reason why, fmt::string_view form, fmt::format_args args) {
  try {
    return error{.code = status_of(why), .why = why, .text = fmt::vformat(form, args)};
  } catch (const fmt::format_error&) {
    // A call site that does not fit its template is our bug; the caller still gets a typed error.
    return error{.code = status::internal,
                 .why = reason::internal_error,
                 .text = fmt::format("internal error: sentence of {}", reason_name(why))};
  }
}

}  // namespace moetier::detail
