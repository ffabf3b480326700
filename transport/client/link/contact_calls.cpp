// The calls of a link: what is asked over the connection in use, tried again over the next one
// until its limit.
#include <algorithm>
#include <utility>

#include "transport/client/link/call_status.hpp"
#include "transport/client/link/contact.hpp"
#include "transport/client/link/rows_codec.hpp"

namespace moetier::client {
namespace {

template <class Response>
expected<std::string> document_of(Response&& response) {
  const auto answer = read_status(response.getStatus());
  if (!answer) return unexpected_error(answer.error());
  const auto text = response.getDocument();
  return std::string(text.cStr(), text.size());
}

}  // namespace

template <class T>
contact::reply<T> contact::ask(const char* name, duration_ns limit, duration_ns slack,
                               attempt<T> once) {
  limit = std::min(limit, k_deadline_max);
  auto late = loop_.delay(limit + slack).then([this, name, limit]() -> expected<T> {
    if (!usable()) return fail(reason::coordinator_unreached, last_failure_);
    return fail(reason::deadline_passed, name, limit / k_millisecond);
  });
  return tries<T>(std::make_shared<attempt<T>>(std::move(once)), monotonic_now() + limit)
      .exclusiveJoin(kj::mv(late));
}

template <class T>
contact::reply<T> contact::tries(std::shared_ptr<attempt<T>> once, time_ns end) {
  const time_ns now = monotonic_now();
  if (now >= end) return kj::NEVER_DONE;  // the limit beside it ends the call
  if (hopeless_) return expected<T>(unexpected_error(*hopeless_));
  if (usable()) {
    KJ_IF_MAYBE (sent, (*once)(end - now)) {
      auto judge = [this, once, end](expected<T> result) -> reply<T> {
        if (result || result.error().why != reason::shutting_down) return result;
        // It will be gone in a moment, and back or replaced in the next.
        return changed_.next().then([this, once, end] { return tries<T>(once, end); });
      };
      return sent->then(
          kj::mv(judge), [this, once, end, number = number_](kj::Exception&& e) -> reply<T> {
            if (e.getType() == kj::Exception::Type::DISCONNECTED || number != number_) {
              lose(number);
              return tries<T>(once, end);
            }
            // Not a refusal, which comes as a status: the other side breaks the protocol.
            return expected<T>(fail(reason::internal_error, "the answer breaks the protocol"));
          });
    }
  }
  return changed_.next().then([this, once, end] { return tries<T>(once, end); });
}

contact::reply<void> contact::connected(duration_ns limit) {
  return ask<void>("connect", limit, 0, [](duration_ns) -> kj::Maybe<reply<void>> {
    return reply<void>(expected<void>());
  });
}

contact::reply<transport::snapshot_ptr> contact::snapshot(duration_ns limit) {
  return ask<transport::snapshot_ptr>(
      "snapshot", limit, 0, [this](duration_ns left) -> kj::Maybe<reply<transport::snapshot_ptr>> {
        auto request = connection_->tier().snapshotRequest();
        write_call(request.initCall(), left);
        return request.send().then([this](capnp::Response<rpc::Tier::SnapshotResults>&& response)
                                       -> expected<transport::snapshot_ptr> {
          const auto answer = read_status(response.getStatus());
          if (!answer) return unexpected_error(answer.error());
          return adopt(response.getSnapshot());
        });
      });
}

contact::reply<session_granted> contact::open(session_wish wish, duration_ns limit) {
  if (sessions_.size() >= k_sessions_per_link_max) {
    return expected<session_granted>(fail(reason::limit_exceeded, "sessions of one link",
                                          sessions_.size() + 1, k_sessions_per_link_max));
  }
  return ask<session_granted>(
      "open_session", limit, 0,
      [this, wish](duration_ns left) -> kj::Maybe<reply<session_granted>> {
        auto request = connection_->tier().openSessionRequest();
        write_call(request.initCall(), left);
        write_wish(request.initWish(), wish);
        return request.send().then([this, wish, number = number_](
                                       capnp::Response<rpc::Tier::OpenSessionResults>&& response)
                                       -> expected<session_granted> {
          const auto answer = read_status(response.getStatus());
          if (!answer) return unexpected_error(answer.error());
          auto granted = take_grant(response.getGrant());
          if (!granted) return granted;
          auto s = std::make_unique<session>();
          s->wish = wish;
          s->server_id = granted->session;
          s->lease = response.getGrant().getLeaseNs();
          s->call_deadline = granted->call_deadline;
          s->tokens_per_second = granted->tokens_per_second;
          s->use = granted->use;
          s->capability = response.getSession();
          s->number = number;
          sessions_[granted->session] = std::move(s);
          highest_ = std::max(highest_, granted->session);
          news_.session_opened(granted->session);
          if (number == number_) connection_tasks_->add(watch(granted->session, number));
          return granted;
        });
      });
}

contact::reply<void> contact::attach(session_id id, transport::source_shape shape,
                                     transport::member_address address, duration_ns limit) {
  return ask<void>(
      "attach", limit, 0, [this, id, shape, address](duration_ns left) -> kj::Maybe<reply<void>> {
        if (auto never = refusal(id)) return reply<void>(expected<void>(unexpected_error(*never)));
        session* const s = ready(id);
        if (s == nullptr) return nullptr;
        auto request = KJ_ASSERT_NONNULL(s->capability).attachRequest();
        write_call(request.initCall(), left);
        write_shape(request.initShape(), shape);
        request.setAddress(data_of(address));
        return request.send().then([](capnp::Response<rpc::Session::AttachResults>&& response) {
          return read_status(response.getStatus());
        });
      });
}

contact::reply<void> contact::close(session_id id, duration_ns limit) {
  return ask<void>("close_session", limit, 0,
                   [this, id](duration_ns left) -> kj::Maybe<reply<void>> {
                     const auto found = sessions_.find(id);
                     if (found == sessions_.end()) {
                       return reply<void>(expected<void>(unexpected_error(*refusal(id))));
                     }
                     if (found->second->ended) return reply<void>(expected<void>());
                     session* const s = ready(id);
                     if (s == nullptr) return nullptr;
                     auto request = KJ_ASSERT_NONNULL(s->capability).closeRequest();
                     write_call(request.initCall(), left);
                     return request.send().then(
                         [](capnp::Response<rpc::Session::CloseResults>&& response) {
                           return read_status(response.getStatus());
                         });
                   })
      .then([this, id](expected<void> result) {
        // Closed here whatever came back: without us its lease lapses.
        forget(id);
        return result;
      });
}

contact::reply<thin_result> contact::forward(session_id id, const thin_call& call) {
  if (const auto fits = check_forward_size(call); !fits) {
    return expected<thin_result>(unexpected_error(fits.error()));
  }
  const auto found = sessions_.find(id);
  const duration_ns limit = call.deadline != 0 || found == sessions_.end()
                                ? std::max<duration_ns>(call.deadline, 1)
                                : found->second->call_deadline;
  // One number for all tries: the session answers a repeated one without a second computation.
  const std::uint64_t number = next_request_++;
  return ask<thin_result>(
      "forward", limit, k_answer_slack,
      [this, id, call, number](duration_ns left) -> kj::Maybe<reply<thin_result>> {
        if (auto never = refusal(id)) {
          return reply<thin_result>(expected<thin_result>(unexpected_error(*never)));
        }
        session* const s = ready(id);
        if (s == nullptr) return nullptr;
        auto request = KJ_ASSERT_NONNULL(s->capability).forwardRequest(rows_size_hint(call));
        write_call(request.initCall(), left, number);
        write_rows(request.initRows(), call);
        return request.send().then([call](capnp::Response<rpc::Session::ForwardResults>&& response)
                                       -> expected<thin_result> {
          const auto answer = read_status(response.getStatus());
          if (!answer) return unexpected_error(answer.error());
          return read_sums(response.getSums(), call.tokens);
        });
      });
}

contact::reply<contact::router_rows> contact::router(layer_id layer, std::uint32_t first_row,
                                                     duration_ns limit) {
  return ask<router_rows>(
      "router", limit, 0,
      [this, layer, first_row](duration_ns left) -> kj::Maybe<reply<router_rows>> {
        auto request = connection_->tier().routerRequest();
        write_call(request.initCall(), left);
        request.setLayer(layer.value);
        request.setFirstRow(first_row);
        return request.send().then(
            [](capnp::Response<rpc::Tier::RouterResults>&& response) -> expected<router_rows> {
              const auto answer = read_status(response.getStatus());
              if (!answer) return unexpected_error(answer.error());
              auto part = read_router_rows(response.getRows());
              if (!part) return unexpected_error(part.error());
              return router_rows{std::move(*part)};
            });
      });
}

contact::reply<std::string> contact::document(admin_document which, duration_ns limit) {
  return ask<std::string>(
      "document", limit, 0, [this, which](duration_ns left) -> kj::Maybe<reply<std::string>> {
        auto admin = connection_->tier().adminRequest();
        write_call(admin.initCall(), left);
        auto capability = admin.send().getAdmin();  // pipelined: one round trip
        const auto send = [&](auto request) -> reply<std::string> {
          write_call(request.initCall(), left);
          return request.send().then([](auto&& response) { return document_of(response); });
        };
        switch (which) {
          case admin_document::placement: return send(capability.placementRequest());
          case admin_document::resolution: return send(capability.resolutionRequest());
          case admin_document::adapters: return send(capability.adaptersRequest());
          case admin_document::experts: return send(capability.expertsRequest());
          case admin_document::status: break;
        }
        return send(capability.statusRequest());
      });
}

contact::reply<void> contact::set_log_level(std::string level, duration_ns limit) {
  return ask<void>("set_log_level", limit, 0,
                   [this, level](duration_ns left) -> kj::Maybe<reply<void>> {
                     auto admin = connection_->tier().adminRequest();
                     write_call(admin.initCall(), left);
                     auto request = admin.send().getAdmin().setLogLevelRequest();
                     write_call(request.initCall(), left);
                     request.setLevel(level);
                     return request.send().then(
                         [](auto&& response) { return read_status(response.getStatus()); });
                   });
}

contact::reply<std::string> contact::load_adapter(std::string name, std::string path,
                                                  duration_ns limit) {
  return ask<std::string>(
      "load_adapter", limit, 0,
      [this, name, path](duration_ns left) -> kj::Maybe<reply<std::string>> {
        auto admin = connection_->tier().adminRequest();
        write_call(admin.initCall(), left);
        auto request = admin.send().getAdmin().loadAdapterRequest();
        write_call(request.initCall(), left);
        request.setName(name);
        request.setPath(path);
        return request.send().then([](auto&& response) { return document_of(response); });
      });
}

contact::reply<std::string> contact::drop_adapter(std::string name, duration_ns limit) {
  return ask<std::string>(
      "drop_adapter", limit, 0, [this, name](duration_ns left) -> kj::Maybe<reply<std::string>> {
        auto admin = connection_->tier().adminRequest();
        write_call(admin.initCall(), left);
        auto request = admin.send().getAdmin().dropAdapterRequest();
        write_call(request.initCall(), left);
        request.setName(name);
        return request.send().then([](auto&& response) { return document_of(response); });
      });
}

}  // namespace moetier::client
