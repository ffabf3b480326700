#include <ctime>
#include <memory>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include "actors/doctor/certificates.hpp"

namespace moetier::doctor {
namespace {

template <class T, void (*release)(T*)>
struct releaser {
  void operator()(T* p) const noexcept { release(p); }
};
using x509 = std::unique_ptr<X509, releaser<X509, X509_free>>;
using private_key = std::unique_ptr<EVP_PKEY, releaser<EVP_PKEY, EVP_PKEY_free>>;
using store = std::unique_ptr<X509_STORE, releaser<X509_STORE, X509_STORE_free>>;
using store_context =
    std::unique_ptr<X509_STORE_CTX, releaser<X509_STORE_CTX, X509_STORE_CTX_free>>;
struct file_closer {
  void operator()(std::FILE* f) const noexcept { std::fclose(f); }
};
using file = std::unique_ptr<std::FILE, file_closer>;

// A file that asks for a pass phrase is no file for a service; nobody is asked.
int no_pass_phrase(char*, int, int, void*) { return 0; }

template <class Owner, class Read>
Owner read_pem(const std::string& path, const char* what, Read read, std::string& problem) {
  const file in(std::fopen(path.c_str(), "re"));
  if (!in) {
    problem = fmt::format("{} cannot be read", path);
    return {};
  }
  Owner owner(read(in.get()));
  if (!owner) problem = fmt::format("{} holds no {} in PEM form", path, what);
  ERR_clear_error();
  return owner;
}

x509 read_certificate(const std::string& path, std::string& problem) {
  return read_pem<x509>(
      path, "certificate",
      [](std::FILE* in) { return PEM_read_X509(in, nullptr, no_pass_phrase, nullptr); }, problem);
}

std::int64_t seconds_of(const ASN1_TIME* t) {
  std::tm broken{};
  if (t == nullptr || ASN1_TIME_to_tm(t, &broken) != 1) return 0;
  return static_cast<std::int64_t>(::timegm(&broken));
}

std::string common_name_of(X509* certificate) {
  char name[256] = {};
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof name);
  return name;
}

// Who signed it; its time is another question.
std::string chain_problem(X509* certificate, X509* authority) {
  const store trusted(X509_STORE_new());
  const store_context context(X509_STORE_CTX_new());
  if (!trusted || !context || X509_STORE_add_cert(trusted.get(), authority) != 1 ||
      X509_STORE_CTX_init(context.get(), trusted.get(), certificate, nullptr) != 1) {
    return "it cannot be checked";
  }
  X509_STORE_CTX_set_flags(context.get(), X509_V_FLAG_NO_CHECK_TIME);
  if (X509_verify_cert(context.get()) == 1) return {};
  return X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()));
}

}  // namespace

certificate_facts probe_certificates(std::string zone, const certificate_paths& paths) {
  certificate_facts f{.zone = std::move(zone), .paths = paths};
  f.now = static_cast<std::int64_t>(std::time(nullptr));
  if (paths.certificate.empty() || paths.key.empty() || paths.authority.empty()) return f;
  const x509 certificate = read_certificate(paths.certificate, f.problem);
  if (!certificate) return f;
  const x509 authority = read_certificate(paths.authority, f.problem);
  if (!authority) return f;
  const auto key = read_pem<private_key>(
      paths.key, "private key without a pass phrase",
      [](std::FILE* in) { return PEM_read_PrivateKey(in, nullptr, no_pass_phrase, nullptr); },
      f.problem);
  if (!key) return f;
  struct stat about {};
  if (::stat(paths.key.c_str(), &about) == 0) f.key_mode = about.st_mode & 07777;
  f.common_name = common_name_of(certificate.get());
  f.begins = seconds_of(X509_get0_notBefore(certificate.get()));
  f.ends = std::min(seconds_of(X509_get0_notAfter(certificate.get())),
                    seconds_of(X509_get0_notAfter(authority.get())));
  f.key_matches = X509_check_private_key(certificate.get(), key.get()) == 1;
  f.chain_problem = chain_problem(certificate.get(), authority.get());
  ERR_clear_error();
  return f;
}

}  // namespace moetier::doctor
