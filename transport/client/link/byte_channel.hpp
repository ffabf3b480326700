#pragma once
// The bytes under a message stream: a non-blocking socket in the clear, or inside TLS. Each call
// does what it can now; whoever owns the loop waits for what it asks for. Owns the socket.
// Thread: kj (the loop's).

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "transport/client/link/rpc_loop.hpp"
#include "transport/tls/tls_session.hpp"

namespace moetier::client {

struct channel_outcome {
  enum class kind : std::uint8_t { moved, wants_read, wants_write, closed, failed };
  kind how = kind::failed;
  std::size_t bytes = 0;  // when moved
};

class byte_channel {
 public:
  virtual ~byte_channel() = default;
  virtual int fd() const noexcept = 0;
  virtual channel_outcome read(std::span<std::byte> into) = 0;
  // As much of the pieces as goes now. One that could not go is offered again, unchanged.
  virtual channel_outcome write(std::span<const iovec> pieces) = 0;
  virtual void end() = 0;  // no more bytes from this side
  // Why the other side ended it; none where the channel cannot know.
  virtual tls::refusal why() const noexcept { return tls::refusal::none; }
};

std::unique_ptr<byte_channel> clear_channel(int fd);

// A socket whose handshake is under way, then the channel over it.
class tls_channel final : public byte_channel {
 public:
  // Take `fd` over. For connect(): the peer's certificate must be of `host`.
  static std::unique_ptr<tls_channel> accept(const tls::credential& own, int fd);
  static std::unique_ptr<tls_channel> connect(const tls::credential& own, int fd,
                                              const std::string& host);
  ~tls_channel() override;

  // True once both sides have proved who they are; false: why() says what was wrong. No limit.
  kj::Promise<bool> shake_hands(rpc_loop& loop);
  const std::string& peer_name() const noexcept { return session_->peer_name(); }

  int fd() const noexcept override { return fd_; }
  channel_outcome read(std::span<std::byte> into) override;
  channel_outcome write(std::span<const iovec> pieces) override;
  void end() override;
  tls::refusal why() const noexcept override { return session_->why(); }

 private:
  tls_channel(int fd, std::unique_ptr<tls::tls_session> session);
  kj::Promise<bool> go_on(fd_readiness& ready);

  const int fd_;
  std::unique_ptr<tls::tls_session> session_;
  std::vector<std::byte> record_;  // pieces side by side: one record instead of many
};

}  // namespace moetier::client
