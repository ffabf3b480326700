#pragma once
// What a role says on standard output once it listens: one JSON line with every real address, so
// that whoever started it with port 0 learns the ports. Thread: any (a value).

#include <optional>
#include <string>
#include <string_view>

namespace moetier::roles {

struct listening {
  std::string role{};   // "coordinator", "worker"
  std::string name{};   // a worker's
  std::string rpc{};    // host:port; empty = not of this role
  std::string admin{};  // path of the administrators' socket
  std::string control{};
  std::string http{};
  int pid = 0;

  bool operator==(const listening&) const = default;
};

std::string to_line(const listening& l);  // without a newline
std::optional<listening> listening_from(std::string_view line);

}  // namespace moetier::roles
