#pragma once
// The bootstrap capability of one connection: schemas/tier.capnp's interfaces Tier and Admin.
// Thread: kj (the server's).

#include "coordinator/rpc/answering.hpp"
#include "coordinator/rpc/desk.hpp"
#include "schemas/tier.capnp.h"

namespace moetier::coordinator {

class tier_service final : public rpc::Tier::Server {
 public:
  explicit tier_service(const service_place& place);

 protected:
  kj::Promise<void> ping(PingContext context) override;
  kj::Promise<void> info(InfoContext context) override;
  kj::Promise<void> snapshot(SnapshotContext context) override;
  kj::Promise<void> openSession(OpenSessionContext context) override;
  kj::Promise<void> resumeSession(ResumeSessionContext context) override;
  kj::Promise<void> admin(AdminContext context) override;
  kj::Promise<void> router(RouterContext context) override;

 private:
  kj::Promise<expected<void>> open_direct(OpenSessionContext context, session_request request);
  kj::Promise<expected<void>> open_thin(OpenSessionContext context, session_request request);
  expected<void> write_grant(rpc::Tier::Grant::Builder to, const session_grant& grant) const;

  desk& desk_;
  const service_place place_;
  rpc::Admin::Client admin_;  // one for all who ask over this connection
};

}  // namespace moetier::coordinator
