#pragma once
// Which of a session's, step's or call's options can be had. What is known but not built yet is
// refused by name, what is not known at all is invalid; nothing is ever passed over. Pure.
// Thread: any.

#include "schemas/base/error.hpp"
#include "transport/client/abi/moetier.h"

namespace moetier::abi {

expected<void> check_wish(const moetier_session_options& options);
expected<void> check_wish(const moetier_step_options& options);
expected<void> check_wish(const moetier_end_options& options);
expected<void> check_wish(const moetier_call& call);
expected<void> check_wish(const moetier_result& result);
expected<void> check_stream(const void* stream);

}  // namespace moetier::abi
