#pragma once
// How a client's link proves who it is on each new connection: its files, read again every time so
// that renewed ones count, and the name that the coordinator's certificate must be of. Files that
// cannot serve later on leave the ones before in use. Thread: kj (the loop's), once made.

#include <memory>
#include <string>

#include "transport/client/link/byte_channel.hpp"
#include "transport/client/link/tier_link.hpp"
#include "transport/tls/credential.hpp"

namespace moetier::client {

class dialer final {
 public:
  // reason::certificate_unusable for files that cannot serve now.
  static expected<dialer> make(const tls_wish& wish, std::string host);

  // Takes `fd` over; the handshake is still to be made.
  std::unique_ptr<tls_channel> dial(int fd);

 private:
  dialer(tls::file_names files, std::string name, tls::credential_ptr credential);

  tls::file_names files_;
  std::string name_;
  tls::credential_ptr credential_;
};

}  // namespace moetier::client
