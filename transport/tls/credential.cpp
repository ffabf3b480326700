#include "transport/tls/credential.hpp"

#include <algorithm>
#include <ctime>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "schemas/base/assert.hpp"
#include "transport/tls/secret_file.hpp"

namespace moetier::tls {
namespace {

constexpr int k_chain_depth_max = 4;

std::array<unsigned char, 32> key_digest(const X509& certificate) {
  std::array<unsigned char, 32> digest{};
  unsigned char* der = nullptr;
  const int length = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(&certificate), &der);
  MOETIER_ASSERT(length > 0);
  EVP_Digest(der, static_cast<std::size_t>(length), digest.data(), nullptr, EVP_sha256(), nullptr);
  OPENSSL_free(der);
  return digest;
}

owned_context make_context(const certificate_chain& chain, const SSL_METHOD* method) {
  owned_context made(SSL_CTX_new(method));
  SSL_CTX* const c = made.get();
  bool fine = c != nullptr && SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) == 1 &&
              SSL_CTX_set_max_proto_version(c, 0) == 1;
  fine = fine && SSL_CTX_use_certificate(c, chain.leaf.get()) == 1 &&
         SSL_CTX_use_PrivateKey(c, chain.key.get()) == 1;
  for (const auto& b : chain.between) fine = fine && SSL_CTX_add1_chain_cert(c, b.get()) == 1;
  if (fine) {
    for (const auto& a : chain.authorities) {
      fine = fine && X509_STORE_add_cert(SSL_CTX_get_cert_store(c), a.get()) == 1;
      fine = fine && SSL_CTX_add_client_CA(c, a.get()) == 1;
    }
  }
  ERR_clear_error();
  if (!fine) return nullptr;
  SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_verify_depth(c, k_chain_depth_max);
  // Each connection shows its certificate anew: what was recorded or revoked opens nothing.
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(c, 0);
  SSL_CTX_set_options(c, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                          SSL_MODE_RELEASE_BUFFERS);
  return made;
}

}  // namespace

expected<credential_ptr> credential::load(const file_names& files, role as, std::int64_t now_s) {
  std::shared_ptr<credential> made(new credential());
  for (const auto& [name, kept, into] :
       {std::tuple(&files.certificate, secrecy::open, &made->texts_.certificate),
        std::tuple(&files.key, secrecy::secret, &made->texts_.key),
        std::tuple(&files.authority, secrecy::open, &made->texts_.authority)}) {
    auto file = read_small_file(*name, kept);
    if (!file) return unexpected_error(file.error());
    *into = std::move(file->text);
  }
  const auto chain = parse_chain(made->texts_, files, as, now_s);
  if (!chain) return unexpected_error(chain.error());
  made->common_name_ = chain->common_name;
  made->not_after_s_ = chain->not_after_s;
  for (const auto& a : chain->authorities) made->authority_keys_.push_back(key_digest(*a));
  made->server_ = make_context(*chain, TLS_server_method());
  made->client_ = make_context(*chain, TLS_client_method());
  if (made->server_ == nullptr || made->client_ == nullptr) {
    return fail(reason::certificate_unusable, files.certificate,
                "its key or its signature is too weak");
  }
  return credential_ptr(std::move(made));
}

bool credential::shares_authority(const credential& other) const noexcept {
  return std::any_of(authority_keys_.begin(), authority_keys_.end(), [&](const auto& key) {
    return std::find(other.authority_keys_.begin(), other.authority_keys_.end(), key) !=
           other.authority_keys_.end();
  });
}

std::int64_t unix_now_s() noexcept { return static_cast<std::int64_t>(std::time(nullptr)); }

}  // namespace moetier::tls
