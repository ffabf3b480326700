#include "transport/client/link/connection.hpp"

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace moetier::client {
namespace {

rpc::Tier::Client bootstrap_of(capnp::RpcSystem<capnp::rpc::twoparty::VatId>& system) {
  capnp::word scratch[8]{};
  capnp::MallocMessageBuilder message(scratch);
  auto server = message.getRoot<capnp::rpc::twoparty::VatId>();
  server.setSide(capnp::rpc::twoparty::Side::SERVER);
  return system.bootstrap(server).castAs<rpc::Tier>();
}

// A descriptor that is closed unless it is handed on.
class owned_fd final {
 public:
  explicit owned_fd(int fd) : fd_(fd) {}
  ~owned_fd() {
    if (fd_ >= 0) close(fd_);
  }
  KJ_DISALLOW_COPY(owned_fd);
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

int pending_error(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error;
}

}  // namespace

capnp::ReaderOptions reader_options() noexcept {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = 2 * k_message_words_max;  // each field is read once; RPC's twice
  options.nestingLimit = k_nesting_max;
  return options;
}

connection::connection(rpc_loop& loop, std::unique_ptr<byte_channel> channel)
    : stream_(loop, std::move(channel)),
      network_(stream_, capnp::rpc::twoparty::Side::CLIENT, reader_options()),
      system_(capnp::makeRpcClient(network_)),
      tier_(bootstrap_of(system_)) {}

kj::Promise<connect_result> connect_socket(rpc_loop& loop, const socket_address& to,
                                           duration_ns limit) {
  auto fd =
      kj::heap<owned_fd>(socket(to.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd->get() < 0) return connect_result{-1, errno};
  if (connect(fd->get(), to.get(), to.length) == 0) return connect_result{fd->release(), 0};
  if (errno != EINPROGRESS) return connect_result{-1, errno};
  auto ready = loop.observe(fd->get());
  auto done = ready->writable();
  owned_fd& socket_fd = *fd;
  return done
      .then([&socket_fd, ready = kj::mv(ready)]() mutable {
        ready = nullptr;  // the stream observes the descriptor anew
        const int error = pending_error(socket_fd.get());
        return error == 0 ? connect_result{socket_fd.release(), 0} : connect_result{-1, error};
      })
      .exclusiveJoin(loop.delay(limit).then([] {
        return connect_result{-1, ETIMEDOUT};
      }))
      .attach(kj::mv(fd));
}

}  // namespace moetier::client
