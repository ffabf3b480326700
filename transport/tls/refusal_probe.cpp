#include "transport/tls/refusal_probe.hpp"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "transport/tls/openssl_owned.hpp"

namespace moetier::tls {
namespace {

enum class welcome : std::uint8_t { refused, admitted, silent };

int connect_to(const std::string& host, std::uint16_t port, duration_ns limit) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return -1;
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  timeval patience{};
  patience.tv_sec = static_cast<time_t>(limit / k_second);
  patience.tv_usec = static_cast<suseconds_t>(limit % k_second / 1000);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const bool connected = fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0;
  freeaddrinfo(found);
  if (connected) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

// A stranger without a certificate that believes whatever it is shown.
welcome knock(const std::string& host, std::uint16_t port, int newest_protocol, duration_ns limit) {
  const owned_context context(SSL_CTX_new(TLS_client_method()));
  if (context == nullptr) return welcome::silent;
  SSL_CTX_set_min_proto_version(context.get(), 0);
  SSL_CTX_set_max_proto_version(context.get(), newest_protocol);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  const int fd = connect_to(host, port, limit);
  if (fd < 0) return welcome::silent;
  welcome answer = welcome::refused;
  {
    const owned_ssl ssl(SSL_new(context.get()));
    SSL_set_fd(ssl.get(), fd);
    // In TLS 1.3 the listener judges after the stranger is done: it shows at the first read.
    if (SSL_connect(ssl.get()) == 1) {
      char byte = 0;
      errno = 0;
      const int got = SSL_read(ssl.get(), &byte, 1);
      const bool waited = got <= 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
      if (got > 0 || waited) answer = welcome::admitted;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      answer = welcome::silent;
    }
    ERR_clear_error();
  }
  close(fd);
  return answer;
}

}  // namespace

expected<void> probe_refusals(const std::string& host, std::uint16_t port, duration_ns limit) {
  for (const auto& [protocol, what] : {std::pair(TLS1_3_VERSION, "without a certificate"),
                                       std::pair(TLS1_2_VERSION, "by TLS 1.2")}) {
    errno = 0;
    switch (knock(host, port, protocol, limit)) {
      case welcome::refused: break;
      case welcome::admitted:
        return fail(reason::not_enabled,
                    std::string("the actor link, which let its self-test in ") + what + ",");
      case welcome::silent:
        return fail(reason::not_enabled, "the actor link, whose self-test got no answer,");
    }
  }
  return {};
}

}  // namespace moetier::tls
