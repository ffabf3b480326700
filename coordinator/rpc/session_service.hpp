#pragma once
// One session as its client's capability: schemas/tier.capnp's interface Session. When its
// connection ends or lets it go, a thin session is closed at once; a direct one lives on in the
// core until its lease lapses or it is resumed. Thread: kj (the server's).

#include <optional>

#include "coordinator/rpc/answering.hpp"
#include "coordinator/rpc/desk.hpp"
#include "schemas/tier.capnp.h"

namespace moetier::coordinator {

class session_service final : public rpc::Session::Server {
 public:
  session_service(const service_place& place, const session_grant& grant,
                  incarnation_id incarnation, const session_request& wish);
  ~session_service() noexcept;
  KJ_DISALLOW_COPY(session_service);

  void end(const error& why);  // the core ended it
  void disconnected();         // its connection is gone; calls may still run

 protected:
  kj::Promise<void> attach(AttachContext context) override;
  kj::Promise<void> forward(ForwardContext context) override;
  kj::Promise<void> renew(RenewContext context) override;
  kj::Promise<void> watch(WatchContext context) override;
  kj::Promise<void> close(CloseContext context) override;
  kj::Promise<void> reportLate(ReportLateContext context) override;

 private:
  struct asked {  // the newest forward, for a client that asks again
    std::uint64_t client = 0;
    std::uint64_t request = 0;
    kj::ForkedPromise<desk::thin_answer> answer;
  };

  kj::Promise<expected<void>> yielded();
  kj::Promise<expected<void>> watched(WatchContext context, rpc::Revision::Reader seen,
                                      time_ns until);
  bool is_newer_than(rpc::Revision::Reader seen) const;
  expected<kj::Promise<desk::thin_answer>> repeat();
  expected<kj::Promise<desk::thin_answer>> ask(rpc::Call::Reader call,
                                               rpc::Session::Rows::Reader rows, duration_ns limit);

  void give_back();

  desk& desk_;
  const service_place place_;
  const session_id session_;
  const incarnation_id incarnation_;
  const std::uint32_t tokens_max_;
  const std::uint32_t top_k_;
  const bool thin_;
  const bool gate_on_tier_;
  std::optional<error> ended_;
  bool connected_ = true;
  time_ns renewed_at_ = 0;
  std::optional<asked> newest_;
  std::uint32_t repeats_waiting_ = 0;
  kj::Own<kj::PromiseFulfiller<void>> watch_yields_;  // of the newest watch
  session_use use_;  // a thin one's is counted here, a direct one tells
};

}  // namespace moetier::coordinator
