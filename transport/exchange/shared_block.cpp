#include "transport/exchange/shared_block.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schemas/base/assert.hpp"

namespace moetier::transport {
namespace {

constexpr int k_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

unexpected_error failure(const char* what) {
  const int why = errno;
  if (why == EMFILE || why == ENFILE) {
    return fail(reason::carrier_unavailable, "shared_memory",
                "file descriptors are used up; raise their limit (ulimit -n)");
  }
  if (why == ENOMEM) {
    return fail(reason::carrier_unavailable, "shared_memory", "memory is used up");
  }
  return fail(reason::carrier_unavailable, "shared_memory", what);
}

// Executable by nobody, where the kernel knows of that (and may insist on it).
int make_file() {
  constexpr unsigned k_noexec_seal = 8;
  constexpr unsigned k_flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int fd = memfd_create("moetier", k_flags | k_noexec_seal);
  return fd >= 0 || errno != EINVAL ? fd : memfd_create("moetier", k_flags);
}

std::span<std::byte> map(int fd, std::size_t bytes) {
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) return {};
  return {static_cast<std::byte*>(base), bytes};
}

}  // namespace

expected<std::unique_ptr<shared_block>> shared_block::make(std::size_t bytes) {
  MOETIER_ASSERT(bytes > k_token_bytes);
  descriptor fd(make_file());
  if (fd.get() < 0) return failure("an anonymous file cannot be made");
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, k_seals) != 0) {
    return failure("an anonymous file cannot be sized and sealed");
  }
  const auto mapped = map(fd.get(), bytes);
  if (mapped.empty()) return failure("an anonymous file cannot be mapped");
  block_name name{.process = static_cast<std::uint32_t>(getpid()), .fd = fd.get(), .token = {}};
  if (getrandom(name.token.data(), sizeof name.token, 0) != sizeof name.token) {
    munmap(mapped.data(), bytes);
    return failure("the system gives no random bytes");
  }
  std::memcpy(mapped.data(), name.token.data(), sizeof name.token);
  return std::unique_ptr<shared_block>(new shared_block(name, mapped, fd.give_up()));
}

expected<std::unique_ptr<shared_block>> shared_block::open(const block_name& name) {
  const auto path = fmt::format("/proc/{}/fd/{}", name.process, name.fd);
  const descriptor fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (fd.get() < 0 && (errno == EACCES || errno == EPERM)) {
    return fail(reason::carrier_unavailable, "shared_memory",
                "the peer's memory is not ours to open: it runs as another user, has more "
                "capabilities or is in another user namespace; make both alike, or set "
                "transport.carrier: ucx");
  }
  const auto gone = [] {
    return fail(reason::carrier_unavailable, "shared_memory",
                "the peer has ended, or runs in another container or on another host; there set "
                "transport.carrier: ucx");
  };
  if (fd.get() < 0) return errno == ENOENT || errno == ENOTDIR ? gone() : failure("no peer");
  struct stat file {};
  const bool sealed = (fcntl(fd.get(), F_GET_SEALS) & F_SEAL_SHRINK) == F_SEAL_SHRINK;
  if (!sealed || fstat(fd.get(), &file) != 0 || file.st_size <= static_cast<off_t>(k_token_bytes)) {
    return gone();
  }
  const auto mapped = map(fd.get(), static_cast<std::size_t>(file.st_size));
  if (mapped.empty()) return failure("the peer's memory cannot be mapped");
  if (std::memcmp(mapped.data(), name.token.data(), sizeof name.token) != 0) {
    munmap(mapped.data(), mapped.size());
    return gone();
  }
  return std::unique_ptr<shared_block>(new shared_block(name, mapped, -1));
}

bool shared_block::is_own() const noexcept {
  return name_.process == static_cast<std::uint32_t>(getpid());
}

shared_block::~shared_block() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

}  // namespace moetier::transport
