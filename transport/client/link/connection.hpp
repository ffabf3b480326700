#pragma once
// One RPC connection of the link to the coordinator: socket, message stream, Cap'n Proto's RPC
// system, bootstrap capability. It only carries calls; whoever owns it decides when it is lost.
// Thread: kj (the loop's).

#include <capnp/rpc-twoparty.h>

#include "schemas/tier.capnp.h"
#include "transport/client/link/rpc_loop.hpp"
#include "transport/client/link/rpc_stream.hpp"
#include "transport/client/link/socket_address.hpp"

namespace moetier::client {

// What both ends let Cap'n Proto read of one message.
capnp::ReaderOptions reader_options() noexcept;

class connection final {
 public:
  connection(rpc_loop& loop, std::unique_ptr<byte_channel> channel);
  KJ_DISALLOW_COPY(connection);

  rpc::Tier::Client& tier() { return tier_; }
  kj::Promise<void> on_disconnect() { return network_.onDisconnect(); }
  // Why the coordinator ended it, as far as TLS tells.
  tls::refusal why() const noexcept { return stream_.why(); }

 private:
  rpc_stream stream_;
  capnp::TwoPartyVatNetwork network_;
  capnp::RpcSystem<capnp::rpc::twoparty::VatId> system_;
  rpc::Tier::Client tier_;
};

// A connected socket, or -1 and errno's value when the peer refused or the limit was over.
struct connect_result {
  int fd = -1;
  int error = 0;
};
kj::Promise<connect_result> connect_socket(rpc_loop& loop, const socket_address& to,
                                           duration_ns limit);

}  // namespace moetier::client
