#pragma once
// Who this process is on one link, and whom it believes there: certificate, key and the authority
// of the link's zone, loaded from files, checked, and made into OpenSSL contexts that speak TLS 1.3
// alone, ask every peer for a certificate and resume nothing. Immutable; a renewed one replaces it
// for the connections to come. It never reads OpenSSL's configuration. Thread: any.

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "schemas/base/error.hpp"
#include "transport/tls/certificate_chain.hpp"

namespace moetier::tls {

class credential final {
 public:
  // `now_s`: Unix time. reason::certificate_unusable names the file and what is wrong with it.
  static expected<std::shared_ptr<const credential>> load(const file_names& files, role as,
                                                          std::int64_t now_s);

  const std::string& common_name() const noexcept { return common_name_; }
  std::int64_t not_after_s() const noexcept { return not_after_s_; }
  // Whether one key signs for both: then who is let into one zone is let into the other.
  bool shares_authority(const credential& other) const noexcept;
  // The very bytes that were checked, for a library that reads files by itself.
  const pem_texts& texts() const noexcept { return texts_; }

  SSL_CTX* server_context() const noexcept { return server_.get(); }
  SSL_CTX* client_context() const noexcept { return client_.get(); }

 private:
  credential() = default;

  pem_texts texts_;
  std::string common_name_;
  std::int64_t not_after_s_ = 0;
  std::vector<std::array<unsigned char, 32>> authority_keys_;  // SHA-256 of their public keys
  owned_context server_;
  owned_context client_;
};

using credential_ptr = std::shared_ptr<const credential>;

std::int64_t unix_now_s() noexcept;

}  // namespace moetier::tls
