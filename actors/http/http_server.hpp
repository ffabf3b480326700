#pragma once
// The one HTTP server of every role: read-only pages by exact path, GET and HEAD alone. It knows no
// page's content; a page is a function that answers from values at hand and never waits. Bodies are
// small; requests carry none. Thread: any; pages are called on the server's own two threads.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/config/endpoint.hpp"
#include "schemas/base/error.hpp"

namespace moetier::http {

struct response {
  int code = 200;
  std::string type = "application/json";
  std::string body;
};

struct page {
  std::string path;  // "/livez"
  std::function<response()> answer;
  // Only for callers of this machine who asked for it by a loopback name: settings and plans are
  // nobody else's business, and no web page of elsewhere may reach them through a browser here.
  bool private_to_host = false;
};

class http_server final {
 public:
  // reason::address_in_use when somebody listens there; port 0 takes a free one.
  static expected<std::unique_ptr<http_server>> start(const config::endpoint& listen,
                                                      std::vector<page> pages);
  ~http_server();
  http_server(const http_server&) = delete;
  http_server& operator=(const http_server&) = delete;

  // Where it listens, with the real port.
  const config::endpoint& address() const noexcept;

 private:
  struct state;
  explicit http_server(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

}  // namespace moetier::http
