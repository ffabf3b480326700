#pragma once
// One RPC connection's message stream over a channel of bytes: the standard Cap'n Proto stream
// framing, read with distrust. The segment table is read and judged first (segments, checked sum),
// then the body, into a buffer that grows with what was received, never with what was claimed. A
// writer whose peer takes nothing for k_write_stall_max fails. Any breach throws a kj::Exception,
// which ends this connection and nothing else. Owns the channel.
//
// Thread: kj (the loop's).

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <capnp/serialize-async.h>

#include "transport/client/link/byte_channel.hpp"
#include "transport/client/link/limits.hpp"
#include "transport/client/link/rpc_loop.hpp"

namespace moetier::client {

class rpc_stream final : public capnp::MessageStream {
 public:
  // Its socket gets no delay, keepalive and TCP_USER_TIMEOUT.
  rpc_stream(rpc_loop& loop, std::unique_ptr<byte_channel> channel);
  ~rpc_stream() noexcept(false);
  KJ_DISALLOW_COPY(rpc_stream);

  // Whether the reason why reading ended was the peer's breach of the framing.
  bool malformed() const noexcept { return malformed_; }
  // Why the other side ended the channel, as far as TLS tells.
  tls::refusal why() const noexcept { return channel_->why(); }

  kj::Promise<kj::Maybe<capnp::MessageReaderAndFds>> tryReadMessage(
      kj::ArrayPtr<kj::AutoCloseFd> fd_space, capnp::ReaderOptions options,
      kj::ArrayPtr<capnp::word> scratch) override;
  kj::Promise<void> writeMessage(
      kj::ArrayPtr<const int> fds,
      kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments) override;
  kj::Promise<void> writeMessages(
      kj::ArrayPtr<kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>>> messages) override;
  kj::Maybe<int> getSendBufferSize() override { return nullptr; }
  kj::Promise<void> end() override;

 private:
  struct incoming;
  struct outgoing;

  kj::Promise<bool> fill(std::span<std::byte> into);  // false: end of stream before it was full
  kj::Promise<bool> fill_body(incoming& message);
  kj::Promise<void> flush(outgoing& message);
  [[noreturn]] void refuse(const char* what);

  rpc_loop& loop_;
  std::unique_ptr<byte_channel> channel_;
  kj::Own<fd_readiness> ready_;
  bool malformed_ = false;
  std::vector<std::byte> buffer_;  // received, not yet taken: [begin_, end_)
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

// A message's size in the stream, table included, in bytes.
std::size_t framed_bytes(kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments) noexcept;

}  // namespace moetier::client
