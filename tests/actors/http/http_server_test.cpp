#include "actors/http/http_server.hpp"

#include <chrono>
#include <stdexcept>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace moetier::http {
namespace {

// A connection, or -1.
int open_connection(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return fd;
  ::close(fd);
  return -1;
}

// One request, the whole answer.
std::string ask(std::uint16_t port, const std::string& request) {
  const int fd = open_connection(port);
  if (fd < 0) return "(refused)";
  EXPECT_EQ(::send(fd, request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  std::string answer;
  char block[4096];
  for (ssize_t n = 0; (n = ::recv(fd, block, sizeof block, 0)) > 0;) {
    answer.append(block, static_cast<std::size_t>(n));
  }
  ::close(fd);
  return answer;
}

std::unique_ptr<http_server> server_on_a_free_port() {
  auto s = http_server::start(
      {"127.0.0.1", 0},
      {{"/livez",
        [] {
          return response{200, "text/plain", "turning\n"};
        }},
       {"/readyz",
        [] {
          return response{503, "application/json", "{}"};
        }},
       {"/throws", []() -> response { throw std::runtime_error("secret detail"); }},
       {"/debug/config",
        [] {
          return response{200, "application/json", "{}"};
        },
        true}});
  EXPECT_TRUE(s.has_value());
  return s ? std::move(*s) : nullptr;
}

TEST(http_server, answers_known_pages_with_their_code_and_body) {
  const auto server = server_on_a_free_port();
  const std::uint16_t port = server->address().port;
  ASSERT_NE(port, 0);
  const std::string live = ask(port, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(live.starts_with("HTTP/1.1 200 OK\r\n")) << live;
  EXPECT_TRUE(live.ends_with("\r\n\r\nturning\n")) << live;
  EXPECT_NE(live.find("Content-Security-Policy: default-src 'none'; script-src 'self'; "),
            std::string::npos);
  EXPECT_EQ(live.find("unsafe"), std::string::npos);
  EXPECT_TRUE(ask(port, "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 503 "));
}

TEST(http_server, head_has_headers_alone) {
  const auto server = server_on_a_free_port();
  const std::string live = ask(server->address().port, "HEAD /livez HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(live.find("Content-Length: 8"), std::string::npos) << live;
  EXPECT_TRUE(live.ends_with("\r\n\r\n")) << live;
}

TEST(http_server, refuses_unknown_pages_and_other_methods) {
  const auto server = server_on_a_free_port();
  const std::uint16_t port = server->address().port;
  for (const char* path : {"/", "/livez/", "/livez/../etc/passwd", "/LIVEZ"}) {
    const std::string answer =
        ask(port, std::string("GET ") + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 404 ")) << path << answer;
  }
  EXPECT_TRUE(ask(port, "POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
                  .starts_with("HTTP/1.1 405 "));
  EXPECT_TRUE(ask(port, "DELETE /livez HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 405 "));
}

TEST(http_server, a_page_that_throws_is_a_500_without_its_text) {
  const auto server = server_on_a_free_port();
  const std::string answer = ask(server->address().port, "GET /throws HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 500 ")) << answer;
  EXPECT_EQ(answer.find("secret"), std::string::npos);
}

TEST(http_server, private_pages_are_refused_to_whoever_was_led_here_by_another_name) {
  const auto server = server_on_a_free_port();
  const std::uint16_t port = server->address().port;
  const auto code = [port](const std::string& host) {
    return ask(port, "GET /debug/config HTTP/1.1\r\nHost: " + host + "\r\n\r\n").substr(9, 3);
  };
  for (const char* own : {"127.0.0.1", "127.0.0.1:7402", "localhost:7402", "[::1]:7402"}) {
    EXPECT_EQ(code(own), "200") << own;
  }
  for (const char* other : {"evil.example", "evil.example:7402", "127.evil.example", "10.0.0.1"}) {
    EXPECT_EQ(code(other), "403") << other;
  }
  EXPECT_TRUE(
      ask(port, "GET /livez HTTP/1.1\r\nHost: evil.example\r\n\r\n").starts_with("HTTP/1.1 200"));
}

TEST(http_server, garbage_does_not_stop_it) {
  const auto server = server_on_a_free_port();
  const std::uint16_t port = server->address().port;
  ask(port, "\x16\x03\x01 garbage\r\n\r\n");
  ask(port, std::string(100'000, 'A') + "\r\n\r\n");
  EXPECT_TRUE(ask(port, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 200 "));
}

TEST(http_server, half_open_connections_do_not_silence_it) {
  const auto server = server_on_a_free_port();
  const std::uint16_t port = server->address().port;
  std::vector<int> half_open;
  for (int i = 0; i < 12; ++i) half_open.push_back(open_connection(port));
  const auto began = std::chrono::steady_clock::now();
  EXPECT_TRUE(ask(port, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 200 "));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(2));
  for (const int fd : half_open) ::close(fd);
}

TEST(http_server, a_busy_port_is_a_typed_error) {
  const auto server = server_on_a_free_port();
  const auto second = http_server::start({"127.0.0.1", server->address().port}, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().why, reason::address_in_use);
  EXPECT_EQ(second.error().text, "the http.listen 127.0.0.1:" +
                                     std::to_string(server->address().port) + " address is in use");
}

TEST(http_server, an_address_of_another_machine_is_not_called_busy) {
  const auto other = http_server::start({"192.0.2.1", 0}, {});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().why, reason::config_invalid);
}

}  // namespace
}  // namespace moetier::http
