#pragma once
// The frame around every method: protocol, deadline, then the method's work, then a Status in the
// results, always. A request that cannot even be read is a refusal too; no text of the RPC layer
// reaches a client. Thread: kj (the server's).

#include <memory>
#include <utility>

#include "coordinator/rpc/account.hpp"
#include "coordinator/rpc/caller.hpp"
#include "coordinator/rpc/desk.hpp"
#include "coordinator/rpc/outward_error.hpp"
#include "schemas/base/no_credit.hpp"
#include "schemas/base/time.hpp"
#include "transport/client/link/call_status.hpp"
#include "transport/client/link/limits.hpp"

namespace moetier::coordinator {

// Where a method runs.
struct service_place {
  desk& the_desk;
  std::shared_ptr<account> client;
  caller who;
  bool administration = false;  // of the interface Admin: not everybody may look
};

// `work(limit)` -> kj::Promise<expected<void>>; it writes the other results itself, when it
// succeeds. Requires: what `work` captures lives as long as the call; the context is a cheap
// handle.
template <class Context, class Work>
kj::Promise<void> answering(const service_place& place, Context context, const char* name,
                            Work work) {
  desk& d = place.the_desk;
  d.counters().calls_total.fetch_add(1, std::memory_order_relaxed);
  const time_ns began = monotonic_now();
  const bool admitted = place.client->begin_call();
  std::uint64_t request = 0;
  auto outcome = kj::evalNow([&]() -> kj::Promise<expected<void>> {
    if (!admitted) {
      return expected<void>(no_credit("too many calls of one connection", 10 * k_millisecond));
    }
    const auto call = context.getParams().getCall();
    request = call.getRequestId();
    const auto limit = client::check_call(call, name);
    if (!limit) return expected<void>(unexpected_error(limit.error()));
    if (place.administration) {
      if (auto may = place.who.may_look(name); !may) return expected<void>(std::move(may));
    }
    return work(*limit).exclusiveJoin(d.loop()
                                          .delay(*limit + client::k_answer_slack)
                                          .then([name, limit = *limit]() -> expected<void> {
                                            return fail(reason::deadline_passed, name,
                                                        limit / k_millisecond);
                                          }));
  });
  return outcome
      .catch_(
          [name](kj::Exception&&) -> expected<void> { return fail(reason::frame_malformed, name); })
      .then([&d, context, request, name, began, who = place.who](expected<void> result) mutable {
        d.counters().meter.count(name, monotonic_now() - began);
        if (result) return client::write_ok(context.getResults().initStatus(), request);
        d.counters().meter.count_refusal(result.error().code);
        d.refused(who, name, request, result.error());
        client::write_error(context.getResults().initStatus(), outward(result.error(), request),
                            request);
      })
      .attach(kj::defer([account = place.client, admitted] {
        if (admitted) account->end_call();
      }));
}

}  // namespace moetier::coordinator
