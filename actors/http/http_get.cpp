#include "actors/http/http_get.hpp"

#include <string>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "schemas/file/descriptor.hpp"

namespace moetier::http {
namespace {

constexpr std::size_t k_answer_bytes_max = std::size_t{4} << 20;

}  // namespace

std::optional<http_answer> http_get(const config::endpoint& at, const char* path,
                                    duration_ns limit) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(at.port);
  if (::inet_pton(AF_INET, at.host.c_str(), &to.sin_addr) != 1) return std::nullopt;
  const descriptor s(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{static_cast<time_t>(limit / k_second),
                         static_cast<suseconds_t>(limit % k_second / k_microsecond)};
  ::setsockopt(s.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(s.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (::connect(s.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    return std::nullopt;
  }
  const std::string ask = std::string("GET ") + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  if (::send(s.get(), ask.data(), ask.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(ask.size())) {
    return std::nullopt;
  }
  std::string answer;
  char block[4096];
  const time_ns until = monotonic_now() + limit;
  while (monotonic_now() < until) {  // the socket's limit is one of each piece
    const ssize_t got = ::recv(s.get(), block, sizeof block, 0);
    if (got < 0) return std::nullopt;
    if (got == 0 || answer.size() > k_answer_bytes_max)
      return parse_answer(answer);  // our pages end with their connection
    answer.append(block, static_cast<std::size_t>(got));
  }
  return std::nullopt;
}

}  // namespace moetier::http
