#include "transport/waits/flight_file.hpp"

#include <cstdio>

#include <fcntl.h>
#include <unistd.h>

#include "transport/waits/wait_document.hpp"

namespace moetier::transport {
namespace {

bool write_all(int fd, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

bool flight_file::write(const wait_ring& ring, std::string_view peers, time_ns now) noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || (ever_ && now - written_at_ < k_write_every)) return false;
  ever_ = true;
  written_at_ = now;
  try {
    const std::string fresh = path_ + ".new";
    // Sessions and layers are not everybody's business.
    const int fd =
        ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return false;
    const bool whole = write_all(fd, flight_document(ring, peers, now));
    const bool closed = ::close(fd) == 0;
    return whole && closed && std::rename(fresh.c_str(), path_.c_str()) == 0;
  } catch (...) {
    return false;  // no memory for the text: the call's own error is what counts
  }
}

}  // namespace moetier::transport
