#include "actors/http/http_server.hpp"

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <civetweb.h>
#include <fmt/core.h>

namespace moetier::http {
namespace {

// Connections that send nothing hold a thread each until the timeout: a handful of them must not
// silence the health checks.
constexpr const char* k_threads = "16";
constexpr const char* k_request_timeout_ms = "1000";
constexpr std::size_t k_messages_bytes_max = 4096;
constexpr std::chrono::milliseconds k_nudge_interval{20};

std::string_view reason_phrase(int code) noexcept {
  switch (code) {
    case 200: return "OK";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 503: return "Service Unavailable";
    default: return "Internal Server Error";
  }
}

void send(mg_connection* to, const response& r, bool head, std::string_view extra = {}) {
  // Nothing is ever loaded from elsewhere, framed or kept: pages show the present.
  const std::string header = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n"
      "Referrer-Policy: no-referrer\r\n"
      "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
      "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
      "frame-ancestors 'none'\r\n"
      "Connection: close\r\n{}\r\n",
      r.code, reason_phrase(r.code), r.type, r.body.size(), extra);
  mg_write(to, header.data(), header.size());
  if (!head && !r.body.empty()) mg_write(to, r.body.data(), r.body.size());
}

// Whether the caller is a process of this machine that names this machine: a browser that was led
// here by another site's name says that name.
bool from_this_host(const mg_connection* connection, const mg_request_info& request) {
  if (!config::is_loopback(request.remote_addr)) return false;
  const char* const host = mg_get_header(connection, "Host");
  if (host == nullptr) return true;
  const auto at = config::parse_endpoint(host);
  return config::is_loopback(at ? at->host : std::string(host));
}

// Connects and leaves.
void touch(const config::endpoint& at) noexcept {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(at.port);
  if (::inet_pton(AF_INET, at.host.c_str(), &to.sin_addr) != 1) return;
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  ::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  ::close(fd);
}

}  // namespace

struct http_server::state {
  std::vector<page> pages;
  config::endpoint address;
  mg_context* context = nullptr;
  std::mutex mutex;
  std::string messages;  // what civetweb said at its start, for the start's error

  ~state() {
    if (context == nullptr) return;
    // civetweb's master looks at the stop flag when its poll ends, up to 2 s later; a connection
    // ends that poll.
    std::condition_variable changed;
    bool stopped = false;
    std::thread nudge([&] {
      std::unique_lock lock(mutex);
      while (!changed.wait_for(lock, k_nudge_interval, [&] { return stopped; })) touch(address);
    });
    mg_stop(context);
    {
      const std::lock_guard lock(mutex);
      stopped = true;
    }
    changed.notify_one();
    nudge.join();
  }

  const page* find(std::string_view path) const {
    for (const page& p : pages) {
      if (p.path == path) return &p;
    }
    return nullptr;
  }

  response answer(const mg_connection* connection, const mg_request_info& request) const {
    const page* p = request.local_uri == nullptr ? nullptr : find(request.local_uri);
    if (p == nullptr) return {404, "text/plain; charset=utf-8", "no such page\n"};
    if (p->private_to_host && !from_this_host(connection, request)) {
      return {403, "text/plain; charset=utf-8", "only from this machine, by a loopback address\n"};
    }
    try {
      return p->answer();
    } catch (const std::exception&) {
      return {500, "text/plain; charset=utf-8", "internal error\n"};
    }
  }

  static int on_request(mg_connection* connection) {
    const mg_request_info* request = mg_get_request_info(connection);
    const auto* self = static_cast<const state*>(request->user_data);
    const bool head = std::strcmp(request->request_method, "HEAD") == 0;
    if (!head && std::strcmp(request->request_method, "GET") != 0) {
      send(connection, {405, "text/plain; charset=utf-8", "GET and HEAD only\n"}, false,
           "Allow: GET, HEAD\r\n");
      return 405;
    }
    const response r = self->answer(connection, *request);
    send(connection, r, head);
    return r.code;
  }

  static int on_message(const mg_connection* connection, const char* message) {
    auto* self = static_cast<state*>(
        mg_get_user_data(mg_get_context(const_cast<mg_connection*>(connection))));
    if (self != nullptr) {
      const std::lock_guard lock(self->mutex);
      if (self->messages.size() < k_messages_bytes_max) self->messages += message;
    }
    return 1;  // handled: civetweb itself prints nothing
  }
};

http_server::http_server(std::unique_ptr<state> s) : state_(std::move(s)) {}
http_server::~http_server() = default;
const config::endpoint& http_server::address() const noexcept { return state_->address; }

expected<std::unique_ptr<http_server>> http_server::start(const config::endpoint& listen,
                                                          std::vector<page> pages) {
  auto s = std::make_unique<state>();
  s->pages = std::move(pages);
  s->address = listen;
  // civetweb binds numbers only.
  if (s->address.host == "localhost") s->address.host = "127.0.0.1";
  const std::string port = config::endpoint_text(s->address);
  const char* options[] = {
      "listening_ports",    port.c_str(),        "num_threads", k_threads, "request_timeout_ms",
      k_request_timeout_ms, "enable_keep_alive", "no",          nullptr};
  mg_callbacks callbacks{};
  callbacks.begin_request = &state::on_request;
  callbacks.log_message = &state::on_message;
  s->context = mg_start(&callbacks, s.get(), options);
  if (s->context == nullptr) {
    if (s->messages.find(std::strerror(EADDRINUSE)) == std::string::npos) {
      return fail(reason::config_invalid, "http.listen", fmt::format("'{}'", port),
                  "an address of this machine that may be bound");
    }
    return fail(reason::address_in_use, fmt::format("http.listen {}", port));
  }
  mg_server_port bound[1]{};
  if (mg_get_server_ports(s->context, 1, bound) == 1) {
    s->address.port = static_cast<std::uint16_t>(bound[0].port);
  }
  return std::unique_ptr<http_server>(new http_server(std::move(s)));
}

}  // namespace moetier::http
