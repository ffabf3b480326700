#include "transport/tls/secret_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <fmt/core.h>

#include "schemas/file/descriptor.hpp"

namespace moetier::tls {
namespace {

constexpr std::size_t k_bytes_max = 1 << 20;

const char* words_of(int error) noexcept {
  switch (error) {
    case ENOENT: return "there is no such file";
    case EACCES: return "this process may not read it";
    default: return "it cannot be opened";
  }
}

}  // namespace

expected<small_file> read_small_file(const std::string& path, secrecy kept) {
  const auto refuse = [&](const auto& why) {
    return fail(reason::certificate_unusable, path, why);
  };
  const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return refuse(words_of(errno));
  // Of what was opened, not of what the name means by now.
  struct stat about {};
  if (::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
    return refuse("it is not a plain file");
  }
  if (kept == secrecy::secret) {
    if ((about.st_mode & 0077) != 0) {
      return refuse(
          fmt::format("others may read the key; its mode is {:04o}, allowed: 0600 or less",
                      about.st_mode & 07777));
    }
    if (about.st_uid != ::geteuid() && about.st_uid != 0) {
      return refuse("the key belongs to another user");
    }
  }
  std::string text(k_bytes_max + 1, '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + have, text.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refuse("reading failed");
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  if (have > k_bytes_max) return refuse("it is larger than 1 MiB");
  text.resize(have);
  return small_file{std::move(text), about.st_mode & 07777};
}

}  // namespace moetier::tls
