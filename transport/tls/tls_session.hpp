#pragma once
// TLS over one non-blocking socket that somebody else owns and waits for: a handshake, then bytes
// both ways, each call doing what it can now and saying what it waits for. Writes raise no SIGPIPE.
// Thread: one at a time.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "transport/tls/credential.hpp"

namespace moetier::tls {

enum class progress : std::uint8_t { done, wants_read, wants_write, closed, failed };

// Why a handshake failed, for counters and sentences.
enum class refusal : std::uint8_t {
  none,
  no_certificate,
  untrusted,  // another authority's, or not meant for this
  expired,
  not_yet_valid,
  wrong_name,    // of another host, or without a common name
  old_protocol,  // no TLS 1.3
  no_tls,        // other bytes
  by_peer,       // the peer refuses our certificate
  cut,           // it left in the middle
  other,
};
inline constexpr std::size_t k_refusals = 11;
const char* name_of(refusal why) noexcept;   // "no_certificate", for labels
const char* words_of(refusal why) noexcept;  // "it showed no certificate", of the peer

class tls_session final {
 public:
  // Requires: `fd` is non-blocking and outlives the session.
  static std::unique_ptr<tls_session> accept(const credential& own, int fd);
  // The peer's certificate must be of `host`, a name or an address.
  static std::unique_ptr<tls_session> connect(const credential& own, int fd,
                                              const std::string& host);
  ~tls_session();
  tls_session(const tls_session&) = delete;
  tls_session& operator=(const tls_session&) = delete;

  progress handshake();
  struct moved {
    progress how = progress::failed;
    std::size_t bytes = 0;  // when done
  };
  moved read(std::span<std::byte> into);
  // A call that could not be done is repeated with the same bytes.
  moved write(std::span<const std::byte> from);
  void close();  // tells the peer that no byte is missing; never waits

  const std::string& peer_name() const noexcept { return peer_name_; }  // after the handshake
  refusal why() const noexcept { return why_; }  // of a failure, also of one after the handshake

 private:
  tls_session(owned_ssl ssl, int fd, bool server);
  progress judge(int result);

  owned_ssl ssl_;
  const int fd_;
  const bool server_;
  bool finished_ = false;
  std::string peer_name_;
  refusal why_ = refusal::none;
};

}  // namespace moetier::tls
