#include "transport/client/link/dialer.hpp"

#include <utility>

namespace moetier::client {

expected<dialer> dialer::make(const tls_wish& wish, std::string host) {
  if (!wish.files.complete()) {
    return fail(reason::invalid_argument, "tls", "not whole",
                "a certificate, its key and the authority, one file each");
  }
  auto loaded = tls::credential::load(wish.files, tls::role::client, tls::unix_now_s());
  if (!loaded) return unexpected_error(loaded.error());
  return dialer(wish.files, wish.server_name.empty() ? std::move(host) : wish.server_name,
                std::move(*loaded));
}

dialer::dialer(tls::file_names files, std::string name, tls::credential_ptr credential)
    : files_(std::move(files)), name_(std::move(name)), credential_(std::move(credential)) {}

std::unique_ptr<tls_channel> dialer::dial(int fd) {
  auto renewed = tls::credential::load(files_, tls::role::client, tls::unix_now_s());
  if (renewed) credential_ = std::move(*renewed);
  return tls_channel::connect(*credential_, fd, name_);
}

}  // namespace moetier::client
