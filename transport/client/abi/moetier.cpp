#include "transport/client/abi/moetier.h"

#include <memory>
#include <utility>

#include "transport/client/abi/handles.hpp"
#include "transport/client/abi/last_error.hpp"
#include "transport/client/abi/session_wish.hpp"
#include "transport/client/abi/versioned_struct.hpp"

// The functions of moetier.h on open handles: arguments in, one call inside the guard, results out.

namespace moetier::abi {
namespace {

unexpected_error null_argument(const char* name) {
  return fail(reason::invalid_argument, name, "null", "a pointer");
}

expected<abi::session*> use(moetier_session* handle) {
  if (handle == nullptr) return null_argument("session");
  if (auto ok = handle->made->check(); !ok) return unexpected_error(ok.error());
  return handle->made.get();
}

expected<abi::service*> use(moetier_service* handle) {
  if (handle == nullptr) return null_argument("service");
  if (auto ok = handle->made->check(); !ok) return unexpected_error(ok.error());
  return handle->made.get();
}

// Runs `body(object)` on what is behind a handle.
template <class Handle, class Body>
moetier_status with(Handle* handle, Body&& body) noexcept {
  return guarded([&]() -> expected<void> {
    auto object = use(handle);
    if (!object) return unexpected_error(object.error());
    return body(**object);
  });
}

}  // namespace

}  // namespace moetier::abi

using namespace moetier;
using namespace moetier::abi;

uint32_t moetier_abi_version(void) { return MOETIER_VERSION; }

const char* moetier_status_name(moetier_status code) {
  return status_name(static_cast<moetier::status>(code)).data();
}

const moetier_error* moetier_last_error(void) { return last_error(); }

moetier_status moetier_service_info(moetier_service* service, moetier_model_info* info) {
  return with(service, [&](abi::service& s) -> expected<void> {
    auto known = s.info();
    if (!known) return unexpected_error(known.error());
    return write_struct("model info", info, *known);
  });
}

moetier_status moetier_service_close(moetier_service* service) {
  const moetier_status done = with(service, [](abi::service& s) { return s.may_close(); });
  if (done == MOETIER_OK) std::unique_ptr<moetier_service>(service).reset();
  return done;
}

moetier_status moetier_session_open(moetier_service* service,
                                    const moetier_session_options* options,
                                    moetier_session** session) {
  return with(service, [&](abi::service& s) -> expected<void> {
    if (session == nullptr) return null_argument("session");
    *session = nullptr;
    const auto wish = read_optional_struct("session options", options);
    if (!wish) return unexpected_error(wish.error());
    auto made = abi::session::open(s, *wish);
    if (!made) return unexpected_error(made.error());
    *session = std::make_unique<moetier_session>(moetier_session{std::move(*made)}).release();
    return {};
  });
}

moetier_status moetier_session_close(moetier_session* session) {
  const moetier_status done = with(session, [](abi::session& s) { return s.close(); });
  if (session != nullptr && done != MOETIER_BAD_STATE) {
    std::unique_ptr<moetier_session>(session).reset();
  }
  return done;
}

moetier_status moetier_stats(moetier_session* session, moetier_stats_snapshot* stats) {
  return with(session, [&](abi::session& s) { return write_struct("stats", stats, s.stats()); });
}

moetier_status moetier_step_begin(moetier_session* session, const moetier_step_options* options,
                                  void* stream) {
  return with(session, [&](abi::session& s) -> expected<void> {
    if (auto ok = check_stream(stream); !ok) return ok;
    const auto wish = read_optional_struct("step options", options);
    if (!wish) return unexpected_error(wish.error());
    return s.step_begin(*wish);
  });
}

moetier_status moetier_step_end(moetier_session* session, const moetier_end_options* options,
                                moetier_step_report* report) {
  return with(session, [&](abi::session& s) -> expected<void> {
    const auto wish = read_optional_struct("end options", options);
    if (!wish) return unexpected_error(wish.error());
    if (auto ok = check_wish(*wish); !ok) return ok;
    moetier_step_report told{};
    if (report != nullptr) {
      if (auto ok = write_struct("step report", report, told); !ok) return ok;
    }
    auto ended = s.step_end(told);
    if (report != nullptr) static_cast<void>(write_struct("step report", report, told));
    return ended;
  });
}

moetier_status moetier_submit(moetier_session* session, const moetier_call* call, void* stream,
                              moetier_ticket* ticket) {
  return with(session, [&](abi::session& s) -> expected<void> {
    if (ticket == nullptr) return null_argument("ticket");
    *ticket = 0;
    const auto read = read_struct("call", call);
    if (!read) return unexpected_error(read.error());
    const auto taken = s.submit(*read, stream);
    if (!taken) return unexpected_error(taken.error());
    *ticket = *taken;
    return {};
  });
}

moetier_status moetier_collect(moetier_session* session, moetier_ticket ticket,
                               const moetier_result* result, void* stream) {
  return with(session, [&](abi::session& s) -> expected<void> {
    const auto read = read_struct("result", result);
    if (!read) return unexpected_error(read.error());
    return s.collect(ticket, *read, stream);
  });
}

moetier_status moetier_forward(moetier_session* session, const moetier_call* call,
                               const moetier_result* result, void* stream) {
  return with(session, [&](abi::session& s) -> expected<void> {
    const auto read = read_struct("call", call);
    if (!read) return unexpected_error(read.error());
    const auto into = read_struct("result", result);
    if (!into) return unexpected_error(into.error());
    return s.forward(*read, *into, stream);
  });
}

moetier_status moetier_missing(moetier_session* session, moetier_ticket ticket, moetier_pair*,
                               size_t* count) {
  return with(session, [&](abi::session& s) -> expected<void> {
    if (count == nullptr) return null_argument("count");
    *count = 0;
    return s.known_ticket(ticket);
  });
}

moetier_status moetier_next_event(moetier_session* session, moetier_event* event,
                                  uint64_t timeout_ns) {
  event_wait how = event_wait::none;
  const moetier_status done = with(session, [&](abi::session& s) -> expected<void> {
    moetier_event next{};
    if (auto ok = write_struct("event", event, next); !ok) return ok;
    const session_id id = s.id();
    how = s.events().pop(next, timeout_ns);
    // If it was closed then the session is gone by now.
    if (how == event_wait::closed) return fail(reason::session_closed, id.value);
    return how == event_wait::came ? write_struct("event", event, next) : expected<void>{};
  });
  return done == MOETIER_OK && how == event_wait::none ? MOETIER_PENDING : done;
}

int moetier_event_fd(moetier_session* session) {
  int descriptor = -1;
  static_cast<void>(with(session, [&](abi::session& s) -> expected<void> {
    descriptor = s.events().descriptor();
    return {};
  }));
  return descriptor;
}

moetier_status moetier_ack_generation(moetier_session* session, uint64_t generation) {
  return with(session, [&](abi::session& s) { return s.ack_generation(generation); });
}

const volatile moetier_status_word* moetier_status_words(moetier_session* session, size_t* count) {
  const volatile moetier_status_word* words = nullptr;
  static_cast<void>(with(session, [&](abi::session& s) -> expected<void> {
    if (count == nullptr) return null_argument("count");
    *count = s.words().size();
    words = s.words().data();
    return {};
  }));
  return words;
}
