#include "actors/process/service_notice.hpp"

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace moetier {
namespace {

constexpr std::size_t k_status_bytes_max = 512;

// A path, or with '@' in front a name in the abstract space; -1 = it cannot be reached.
int connect_to(const std::string& name) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (name.size() < 2 || name.size() >= sizeof to.sun_path) return -1;
  if (name.front() != '/' && name.front() != '@') return -1;
  std::memcpy(to.sun_path, name.data(), name.size());
  if (name.front() == '@') to.sun_path[0] = '\0';
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  if (fd >= 0 && ::connect(fd, reinterpret_cast<const sockaddr*>(&to), bytes) == 0) return fd;
  if (fd >= 0) ::close(fd);
  return -1;
}

// One line of status: newlines would be words of their own.
std::string status_of(bool ready, const std::vector<std::string>& reasons) {
  std::string text = ready ? "serving" : "not ready: ";
  for (std::size_t i = 0; !ready && i < reasons.size(); ++i)
    text += (i == 0 ? "" : "; ") + reasons[i];
  if (text.size() > k_status_bytes_max) text.resize(k_status_bytes_max);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return text;
}

}  // namespace

std::optional<std::string> readiness_words::next(bool ready,
                                                 const std::vector<std::string>& reasons) {
  std::string status = status_of(ready, reasons);
  const bool first = ready && !told_ready_;
  if (!first && status == status_) return std::nullopt;
  status_ = std::move(status);
  told_ready_ = told_ready_ || ready;
  return (first ? "READY=1\nSTATUS=" : "STATUS=") + status_;
}

service_notice::service_notice() {
  const char* const name = std::getenv("NOTIFY_SOCKET");
  if (name == nullptr) return;
  socket_ = connect_to(name);
  ::unsetenv("NOTIFY_SOCKET");
}

service_notice::~service_notice() {
  if (socket_ >= 0) ::close(socket_);
}

void service_notice::readiness(bool ready, const std::vector<std::string>& reasons) {
  if (!wanted()) return;
  if (const auto words = words_.next(ready, reasons)) send(*words);
}

void service_notice::stopping() { send("STOPPING=1"); }

void service_notice::send(const std::string& words) {
  if (!wanted()) return;
  [[maybe_unused]] const ssize_t sent = ::send(socket_, words.data(), words.size(), MSG_NOSIGNAL);
}

}  // namespace moetier
