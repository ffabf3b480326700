#include "transport/client/abi/last_error.hpp"

#include <string>
#include <utility>

namespace moetier::abi {
namespace {

struct thread_error {
  bool set = false;
  std::string text;
  moetier_error shown{};
};

thread_local thread_error t_error;

}  // namespace

moetier_status set_last_error(error why) noexcept {
  thread_error& mine = t_error;
  mine.set = true;
  mine.text = std::move(why.text);
  // An error without a sentence comes from the guard, where making one may fail again.
  const char* text = mine.text.c_str();
  if (mine.text.empty()) {
    text = why.code == status::no_memory ? "memory is used up" : "internal error";
  }
  mine.shown = {.size = sizeof(moetier_error),
                .version = MOETIER_VERSION,
                .status = static_cast<std::uint32_t>(why.code),
                .retryable = is_retryable(why.code) ? 1u : 0u,
                .reason = reason_name(why.why).data(),
                .text = text,
                .request_id = why.request_id,
                .retry_after_ns = why.retry_after_ns};
  return static_cast<moetier_status>(why.code);
}

const moetier_error* last_error() noexcept { return t_error.set ? &t_error.shown : nullptr; }

}  // namespace moetier::abi
