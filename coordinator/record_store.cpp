#include "coordinator/record_store.hpp"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

#include "schemas/base/assert.hpp"
#include "schemas/base/checksum.hpp"
#include "schemas/file/descriptor.hpp"

namespace moetier::coordinator {
namespace {

constexpr const char* k_names[] = {"record.0", "record.1"};
constexpr std::size_t k_file_bytes_max = std::size_t{512} * 1024 * 1024;
constexpr std::size_t k_sequence_bytes = 12;  // sequence and its own CRC32C, before the record

unexpected_error system_failure(const char* doing) {
  return fail(reason::state_unusable, fmt::format("{}: {}", doing, std::strerror(errno)));
}

// The sequence stands in front of the record and is covered together with it by the second check.
std::vector<std::uint8_t> file_of(std::uint64_t sequence, const record& value) {
  std::vector<std::uint8_t> bytes(k_sequence_bytes);
  const std::vector<std::uint8_t> body = to_bytes(value);
  std::memcpy(bytes.data(), &sequence, 8);
  bytes.insert(bytes.end(), body.begin(), body.end());
  const std::uint32_t check =
      crc32c(std::as_bytes(std::span(body)), crc32c(std::as_bytes(std::span(bytes).first(8))));
  std::memcpy(bytes.data() + 8, &check, 4);
  return bytes;
}

struct whole_file {
  std::uint64_t sequence = 0;
  record value;
};

expected<whole_file> parse(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < k_sequence_bytes) return fail(reason::state_unusable, "a file is cut short");
  whole_file w;
  std::uint32_t check = 0;
  std::memcpy(&w.sequence, bytes.data(), 8);
  std::memcpy(&check, bytes.data() + 8, 4);
  const auto body = bytes.subspan(k_sequence_bytes);
  if (check != crc32c(std::as_bytes(body), crc32c(std::as_bytes(bytes.first(8))))) {
    return fail(reason::state_unusable, "a file fails its checksum");
  }
  auto value = record_from_bytes(body);
  if (!value) return unexpected_error(std::move(value.error()));
  w.value = std::move(*value);
  return w;
}

// nullopt: there is no such file.
expected<std::optional<std::vector<std::uint8_t>>> read_file(const std::string& path) {
  const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file.get() < 0) {
    if (errno == ENOENT) return std::optional<std::vector<std::uint8_t>>();
    return system_failure("opening a record");
  }
  std::vector<std::uint8_t> all;
  std::array<std::uint8_t, 65536> piece;
  for (;;) {
    const ssize_t n = ::read(file.get(), piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_failure("reading a record");
    if (n == 0) return std::optional(std::move(all));
    if (all.size() > k_file_bytes_max) return fail(reason::state_unusable, "a record is too large");
    all.insert(all.end(), piece.begin(), piece.begin() + n);
  }
}

expected<void> write_file(const std::string& path, std::span<const std::uint8_t> bytes) {
  const descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return system_failure("opening a record");
  while (!bytes.empty()) {
    const ssize_t n = ::write(file.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return system_failure("writing a record");
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  if (::fsync(file.get()) != 0) return system_failure("flushing a record");
  return {};
}

expected<void> flush_directory(const std::string& path) {
  const descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0 || ::fsync(directory.get()) != 0) {
    return system_failure("flushing the state directory");
  }
  return {};
}

expected<void> check_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return system_failure("creating the state directory");
  }
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return system_failure("looking at the state directory");
  if (!S_ISDIR(about.st_mode)) return fail(reason::state_unusable, "it is not a directory");
  if (about.st_uid != ::geteuid()) {
    return fail(reason::state_unusable, "the state directory belongs to another user");
  }
  if ((about.st_mode & 0077) != 0) {
    return fail(
        reason::state_unusable,
        fmt::format("the state directory has mode {:04o}; it must be 0700", about.st_mode & 07777));
  }
  return {};
}

}  // namespace

record_store::record_store(std::string directory, int lock)
    : directory_(std::move(directory)), lock_(lock) {}

record_store::~record_store() { ::close(lock_); }

expected<std::unique_ptr<record_store>> record_store::open(const std::string& directory) {
  if (auto ok = check_directory(directory); !ok) return unexpected_error(std::move(ok.error()));
  descriptor lock(
      ::open((directory + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock.get() < 0) return system_failure("opening the lock");
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return system_failure("taking the lock");
    return fail(reason::state_unusable, "another coordinator runs on this state");
  }
  std::unique_ptr<record_store> store(new record_store(directory, lock.give_up()));
  if (auto ok = store->read(); !ok) return unexpected_error(std::move(ok.error()));
  return store;
}

expected<void> record_store::read() {
  bool found = false;
  for (const char* name : k_names) {
    auto bytes = read_file(directory_ + "/" + name);
    if (!bytes) return unexpected_error(std::move(bytes.error()));
    if (!*bytes) continue;
    found = true;
    auto whole = parse(**bytes);
    if (!whole) {
      damage_ = fmt::format("{}: {}", name, whole.error().text);
      continue;
    }
    if (stored_ && whole->sequence <= sequence_) continue;
    sequence_ = whole->sequence;
    stored_ = std::move(whole->value);
  }
  // A single torn file is a first write that never became durable: nothing was built on it.
  const bool both = ::access((directory_ + "/" + k_names[0]).c_str(), F_OK) == 0 &&
                    ::access((directory_ + "/" + k_names[1]).c_str(), F_OK) == 0;
  if (found && !stored_ && both) {
    return fail(reason::state_unusable, fmt::format("no whole record is left ({})", damage_));
  }
  return {};
}

expected<void> record_store::write(epoch_number expected_epoch, const record& value) {
  const epoch_number held = stored_ ? stored_->epoch : epoch_number();
  if (held != expected_epoch) {
    return fail(
        reason::sequence, "a write of the durable record",
        fmt::format("epoch {} is stored; {} was expected", held.value, expected_epoch.value));
  }
  MOETIER_ASSERT(value.epoch >= held);
  // Always over the older file: the newest whole one stays until this one is whole.
  const std::uint64_t next = sequence_ + 1;
  const std::string path = directory_ + "/" + k_names[next % 2];
  if (auto ok = write_file(path, file_of(next, value)); !ok) return ok;
  if (auto ok = flush_directory(directory_); !ok) return ok;
  sequence_ = next;
  stored_ = value;
  return {};
}

}  // namespace moetier::coordinator
