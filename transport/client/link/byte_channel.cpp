#include "transport/client/link/byte_channel.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace moetier::client {
namespace {

using kind = channel_outcome::kind;

constexpr std::size_t k_record_bytes_max = 16 * 1024;

void make_non_blocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

class plain_channel final : public byte_channel {
 public:
  explicit plain_channel(int fd) : fd_(fd) { make_non_blocking(fd); }
  ~plain_channel() override { close(fd_); }

  int fd() const noexcept override { return fd_; }

  channel_outcome read(std::span<std::byte> into) override {
    ssize_t got = 0;
    do {
      got = recv(fd_, into.data(), into.size(), 0);
    } while (got < 0 && errno == EINTR);
    if (got > 0) return {kind::moved, static_cast<std::size_t>(got)};
    if (got == 0) return {kind::closed};
    return {would_block() ? kind::wants_read : kind::failed};
  }

  channel_outcome write(std::span<const iovec> pieces) override {
    msghdr header{};
    header.msg_iov = const_cast<iovec*>(pieces.data());  // msghdr is not const correct
    header.msg_iovlen = pieces.size();
    ssize_t sent = 0;
    do {
      sent = sendmsg(fd_, &header, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent >= 0) return {kind::moved, static_cast<std::size_t>(sent)};
    return {would_block() ? kind::wants_write : kind::failed};
  }

  void end() override { shutdown(fd_, SHUT_WR); }

 private:
  static bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK; }

  const int fd_;
};

channel_outcome outcome_of(tls::tls_session::moved m) {
  switch (m.how) {
    case tls::progress::done: return {kind::moved, m.bytes};
    case tls::progress::wants_read: return {kind::wants_read};
    case tls::progress::wants_write: return {kind::wants_write};
    case tls::progress::closed: return {kind::closed};
    case tls::progress::failed: break;
  }
  return {kind::failed};
}

}  // namespace

std::unique_ptr<byte_channel> clear_channel(int fd) { return std::make_unique<plain_channel>(fd); }

tls_channel::tls_channel(int fd, std::unique_ptr<tls::tls_session> session)
    : fd_(fd), session_(std::move(session)) {}

tls_channel::~tls_channel() {
  session_->close();
  session_ = nullptr;
  close(fd_);
}

std::unique_ptr<tls_channel> tls_channel::accept(const tls::credential& own, int fd) {
  make_non_blocking(fd);
  return std::unique_ptr<tls_channel>(new tls_channel(fd, tls::tls_session::accept(own, fd)));
}

std::unique_ptr<tls_channel> tls_channel::connect(const tls::credential& own, int fd,
                                                  const std::string& host) {
  make_non_blocking(fd);
  return std::unique_ptr<tls_channel>(
      new tls_channel(fd, tls::tls_session::connect(own, fd, host)));
}

kj::Promise<bool> tls_channel::shake_hands(rpc_loop& loop) {
  auto ready = loop.observe(fd_);
  auto done = go_on(*ready);
  return done.attach(kj::mv(ready));
}

kj::Promise<bool> tls_channel::go_on(fd_readiness& ready) {
  switch (session_->handshake()) {
    case tls::progress::done: return true;
    case tls::progress::wants_read: return ready.readable().then([&] { return go_on(ready); });
    case tls::progress::wants_write: return ready.writable().then([&] { return go_on(ready); });
    default: return false;
  }
}

channel_outcome tls_channel::read(std::span<std::byte> into) {
  return outcome_of(session_->read(into));
}

channel_outcome tls_channel::write(std::span<const iovec> pieces) {
  const auto* const first = static_cast<const std::byte*>(pieces.front().iov_base);
  if (pieces.size() == 1 || pieces.front().iov_len >= k_record_bytes_max) {
    return outcome_of(session_->write({first, pieces.front().iov_len}));
  }
  record_.clear();
  for (const iovec& piece : pieces) {
    const auto* const from = static_cast<const std::byte*>(piece.iov_base);
    const std::size_t take = std::min(piece.iov_len, k_record_bytes_max - record_.size());
    record_.insert(record_.end(), from, from + take);
    if (record_.size() == k_record_bytes_max) break;
  }
  return outcome_of(session_->write(record_));
}

void tls_channel::end() {
  session_->close();
  shutdown(fd_, SHUT_WR);
}

}  // namespace moetier::client
