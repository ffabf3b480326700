#pragma once
// The other end of the RPC server, under a test's hand: a plain socket, or Cap'n Proto calls with
// every field of theirs open to mischief. Thread: owner.

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <cstdlib>
#include <vector>

#include "transport/client/link/call_status.hpp"
#include "transport/client/link/connection.hpp"
#include "transport/client/link/rows_codec.hpp"

namespace moetier::coordinator {

inline int connect_to(std::uint16_t port, int receive_bytes = 0) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (receive_bytes > 0) {
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
  }
  const timeval patience{.tv_sec = 10, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) std::abort();
  return fd;
}

// Sends what it can and reads until the peer closes; false if it does not within ten seconds.
inline bool is_closed_after(int fd, const std::vector<std::uint32_t>& words) {
  (void)send(fd, words.data(), words.size() * 4, MSG_NOSIGNAL);
  char sink[4096];
  ssize_t got = 0;
  while ((got = recv(fd, sink, sizeof sink, 0)) > 0) {
  }
  const bool closed = got == 0 || errno == ECONNRESET;
  close(fd);
  return closed;
}

class raw_client final {
 public:
  explicit raw_client(std::uint16_t port) : wire(loop, client::clear_channel(connect_to(port))) {}

  raw_client(const tls::credential_ptr& own, std::uint16_t port)
      : wire(loop, proved(loop, *own, port)) {}

  rpc::Tier::Client& tier() { return wire.tier(); }
  template <class Request>
  auto send(Request&& request, std::uint64_t id = 1, duration_ns deadline = 10 * k_second,
            std::uint16_t protocol = 1) {
    auto call = request.initCall();
    call.setProtocol(protocol);
    call.setClientId(77);
    call.setRequestId(id);
    call.setDeadlineNs(deadline);
    return request.send().wait(loop.scope());
  }
  // "" if it is OK.
  template <class Response>
  static std::string refusal(const Response& response) {
    const auto result = client::read_status(response.getStatus());
    return result ? "" : result.error().text;
  }

  static std::unique_ptr<client::byte_channel> proved(client::rpc_loop& loop,
                                                      const tls::credential& own,
                                                      std::uint16_t port) {
    auto channel = client::tls_channel::connect(own, connect_to(port), "127.0.0.1");
    if (!channel->shake_hands(loop).wait(loop.scope())) std::abort();
    return channel;
  }

  client::rpc_loop loop;
  client::connection wire;
};

}  // namespace moetier::coordinator
