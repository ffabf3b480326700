#include "transport/tls/failure_containment.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>

namespace moetier::tls {
namespace {

// A handshake ended in failure: whoever made it learns that from its result, not from the queue.
void told(const SSL* ssl, int where, int result) {
  const bool over = where == SSL_CB_ACCEPT_EXIT || where == SSL_CB_CONNECT_EXIT;
  if (over && result <= 0 && SSL_want(ssl) == SSL_NOTHING) ERR_clear_error();
}

void made(void* ssl, void*, CRYPTO_EX_DATA*, int, long, void*) {
  SSL_set_info_callback(static_cast<SSL*>(ssl), told);
  // A peer that was killed says no farewell: an end like any other, not an error in the queue.
  SSL_set_options(static_cast<SSL*>(ssl), SSL_OP_IGNORE_UNEXPECTED_EOF);
}

void gone(void*, void*, CRYPTO_EX_DATA*, int, long, void*) { ERR_clear_error(); }

}  // namespace

void contain_failures() noexcept {
  static const int installed = SSL_get_ex_new_index(0, nullptr, made, nullptr, gone);
  static_cast<void>(installed);
}

}  // namespace moetier::tls
