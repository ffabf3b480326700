#pragma once
// OpenSSL's objects with one owner each. Included by this folder's sources alone. Thread: any.

#include <memory>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

namespace moetier::tls {

template <auto Free>
struct freed_by {
  template <class T>
  void operator()(T* p) const noexcept {
    Free(p);
  }
};

using owned_bio = std::unique_ptr<BIO, freed_by<BIO_free_all>>;
using owned_key = std::unique_ptr<EVP_PKEY, freed_by<EVP_PKEY_free>>;
using owned_certificate = std::unique_ptr<X509, freed_by<X509_free>>;
using owned_store = std::unique_ptr<X509_STORE, freed_by<X509_STORE_free>>;
using owned_store_context = std::unique_ptr<X509_STORE_CTX, freed_by<X509_STORE_CTX_free>>;
using owned_context = std::unique_ptr<SSL_CTX, freed_by<SSL_CTX_free>>;
using owned_ssl = std::unique_ptr<SSL, freed_by<SSL_free>>;

}  // namespace moetier::tls
