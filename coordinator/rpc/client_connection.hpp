#pragma once
// One accepted client, whoever it proved to be: its socket, message stream, RPC system and
// bootstrap capability. Between the stream and the RPC system sits the gate, which counts the calls
// that were not finished yet and the bytes queued for a client that does not read: either over its
// bound ends the connection. Thread: kj (the server's).

#include <capnp/rpc-twoparty.h>

#include "coordinator/rpc/account.hpp"
#include "coordinator/rpc/caller.hpp"
#include "coordinator/rpc/desk.hpp"
#include "transport/client/link/rpc_stream.hpp"

namespace moetier::coordinator {

class client_connection final {
 public:
  // `heard` is told of every message; false = the connection ends.
  client_connection(desk& d, std::unique_ptr<client::byte_channel> channel, caller who,
                    std::function<bool()> heard);
  ~client_connection() noexcept(false);
  KJ_DISALLOW_COPY(client_connection);

  kj::Promise<void> on_disconnect() { return network_.onDisconnect(); }

 private:
  class gate;

  desk& desk_;
  const std::shared_ptr<account> account_;
  client::rpc_stream stream_;
  kj::Own<gate> gate_;
  capnp::TwoPartyVatNetwork network_;
  capnp::RpcSystem<capnp::rpc::twoparty::VatId> system_;
};

}  // namespace moetier::coordinator
