#include "transport/tls/tls_session.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/sslerr.h>
#include <openssl/x509v3.h>

#include "schemas/base/assert.hpp"

namespace moetier::tls {
namespace {

// ---- a socket under OpenSSL: its own one writes with write(), which raises SIGPIPE

int fd_of(BIO* bio) { return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio))); }

int put(BIO* bio, const char* bytes, int length) {
  BIO_clear_retry_flags(bio);
  const ssize_t sent = send(fd_of(bio), bytes, static_cast<std::size_t>(length), MSG_NOSIGNAL);
  if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    BIO_set_retry_write(bio);
  }
  return static_cast<int>(sent);
}

int get(BIO* bio, char* bytes, int length) {
  BIO_clear_retry_flags(bio);
  const ssize_t got = recv(fd_of(bio), bytes, static_cast<std::size_t>(length), 0);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    BIO_set_retry_read(bio);
  }
  return static_cast<int>(got);
}

long control(BIO*, int what, long, void*) { return what == BIO_CTRL_FLUSH ? 1 : 0; }

int create(BIO* bio) {
  BIO_set_init(bio, 1);
  return 1;
}

const BIO_METHOD* socket_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "moetier socket");
    BIO_meth_set_write(m, put);
    BIO_meth_set_read(m, get);
    BIO_meth_set_ctrl(m, control);
    BIO_meth_set_create(m, create);
    return m;
  }();
  return method;
}

owned_ssl over(SSL_CTX* context, int fd) {
  owned_ssl ssl(SSL_new(context));
  BIO* const bio = BIO_new(socket_method());
  MOETIER_ASSERT(ssl != nullptr && bio != nullptr);
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)));
  SSL_set_bio(ssl.get(), bio, bio);  // owns it from here on
  // This session reads the error queue and clears it: nothing is to be contained.
  SSL_set_info_callback(ssl.get(), nullptr);
  SSL_clear_options(ssl.get(), SSL_OP_IGNORE_UNEXPECTED_EOF);
  return ssl;
}

// ---- what went wrong

refusal of_verify(long code) noexcept {
  switch (code) {
    case X509_V_ERR_CERT_HAS_EXPIRED: return refusal::expired;
    case X509_V_ERR_CERT_NOT_YET_VALID: return refusal::not_yet_valid;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH: return refusal::wrong_name;
    default: return refusal::untrusted;
  }
}

refusal of_error(unsigned long code, long verified) noexcept {
  switch (ERR_GET_REASON(code)) {
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE: return refusal::no_certificate;
    case SSL_R_CERTIFICATE_VERIFY_FAILED: return of_verify(verified);
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
    case SSL_R_NO_PROTOCOLS_AVAILABLE: return refusal::old_protocol;
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_BAD_RECORD_TYPE:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_ENCRYPTED_LENGTH_TOO_LONG:
    case SSL_R_RECORD_LENGTH_MISMATCH:
    case SSL_R_LENGTH_MISMATCH:
    case SSL_R_UNEXPECTED_MESSAGE:
    case SSL_R_UNKNOWN_PROTOCOL: return refusal::no_tls;
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR: return refusal::by_peer;
    case SSL_R_UNEXPECTED_EOF_WHILE_READING: return refusal::cut;
    default: return refusal::other;
  }
}

bool is_address(const std::string& host) noexcept {
  in6_addr any{};
  return inet_pton(AF_INET, host.c_str(), &any) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &any) == 1;
}

}  // namespace

const char* name_of(refusal why) noexcept {
  switch (why) {
    case refusal::none: return "none";
    case refusal::no_certificate: return "no_certificate";
    case refusal::untrusted: return "untrusted";
    case refusal::expired: return "expired";
    case refusal::not_yet_valid: return "not_yet_valid";
    case refusal::wrong_name: return "wrong_name";
    case refusal::old_protocol: return "old_protocol";
    case refusal::no_tls: return "no_tls";
    case refusal::by_peer: return "by_peer";
    case refusal::cut: return "cut";
    case refusal::other: break;
  }
  return "other";
}

const char* words_of(refusal why) noexcept {
  switch (why) {
    case refusal::none: return "nothing is wrong";
    case refusal::no_certificate: return "it showed no certificate";
    case refusal::untrusted:
      return "its certificate is none that the zone's authority issued for this";
    case refusal::expired: return "its certificate has expired";
    case refusal::not_yet_valid: return "its certificate is not valid yet";
    case refusal::wrong_name: return "its certificate is of another name";
    case refusal::old_protocol: return "it speaks no TLS 1.3";
    case refusal::no_tls: return "it speaks no TLS";
    case refusal::by_peer: return "it refuses this side's certificate";
    case refusal::cut: return "it left during the TLS handshake";
    case refusal::other: break;
  }
  return "the TLS handshake failed";
}

tls_session::tls_session(owned_ssl ssl, int fd, bool server)
    : ssl_(std::move(ssl)), fd_(fd), server_(server) {
  if (server_) {
    SSL_set_accept_state(ssl_.get());
  } else {
    SSL_set_connect_state(ssl_.get());
  }
}

tls_session::~tls_session() = default;

std::unique_ptr<tls_session> tls_session::accept(const credential& own, int fd) {
  return std::unique_ptr<tls_session>(new tls_session(over(own.server_context(), fd), fd, true));
}

std::unique_ptr<tls_session> tls_session::connect(const credential& own, int fd,
                                                  const std::string& host) {
  owned_ssl ssl = over(own.client_context(), fd);
  if (is_address(host)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), host.c_str());
  } else {
    // A common name is a tenant, never a host.
    SSL_set_hostflags(ssl.get(), X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    SSL_set1_host(ssl.get(), host.c_str());
    SSL_set_tlsext_host_name(ssl.get(), host.c_str());
  }
  return std::unique_ptr<tls_session>(new tls_session(std::move(ssl), fd, false));
}

progress tls_session::judge(int result) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_NONE: return progress::done;
    case SSL_ERROR_WANT_READ: return progress::wants_read;
    case SSL_ERROR_WANT_WRITE: return progress::wants_write;
    case SSL_ERROR_ZERO_RETURN: return progress::closed;
    case SSL_ERROR_SYSCALL: why_ = refusal::cut; break;
    default: why_ = of_error(ERR_peek_error(), SSL_get_verify_result(ssl_.get()));
  }
  ERR_clear_error();
  return progress::failed;
}

progress tls_session::handshake() {
  ERR_clear_error();
  const progress how = judge(SSL_do_handshake(ssl_.get()));
  if (how == progress::closed) why_ = refusal::cut;
  if (how != progress::done) return how == progress::closed ? progress::failed : how;
  const X509* const shown = SSL_get0_peer_certificate(ssl_.get());
  MOETIER_ASSERT(shown != nullptr && SSL_get_verify_result(ssl_.get()) == X509_V_OK);
  MOETIER_ASSERT(SSL_version(ssl_.get()) == TLS1_3_VERSION);
  peer_name_ = common_name_of(*shown);
  if (server_ && peer_name_.empty()) {
    why_ = refusal::wrong_name;
    return progress::failed;
  }
  finished_ = true;
  return progress::done;
}

tls_session::moved tls_session::read(std::span<std::byte> into) {
  ERR_clear_error();
  std::size_t got = 0;
  const int result = SSL_read_ex(ssl_.get(), into.data(), into.size(), &got);
  return {judge(result), got};
}

tls_session::moved tls_session::write(std::span<const std::byte> from) {
  ERR_clear_error();
  std::size_t sent = 0;
  const int result = SSL_write_ex(ssl_.get(), from.data(), from.size(), &sent);
  return {judge(result), sent};
}

void tls_session::close() {
  if (!finished_ || why_ != refusal::none) return;
  ERR_clear_error();
  SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

}  // namespace moetier::tls
