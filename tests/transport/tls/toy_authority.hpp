#pragma once
// A certificate authority of a test, and what it issues, as PEM files in a folder of the test's
// own. Times are relative to now. Thread: owner.

#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "tests/schemas/file/scratch_folder.hpp"
#include "transport/tls/certificate_files.hpp"
#include "transport/tls/openssl_owned.hpp"

namespace moetier::tls::toy {

struct wish {
  std::string common_name = "tester";
  std::string alternative = "IP:127.0.0.1,DNS:localhost";  // its owner's host
  std::string usage = "serverAuth,clientAuth";
  long from_s = -3600;
  long to_s = 3600;
};

class authority final {
 public:
  // Requires: the folder outlives it.
  authority(const scratch_folder& folder, std::string name)
      : folder_(folder), name_(std::move(name)), key_(EVP_EC_gen("P-256")) {
    wish long_lived;
    long_lived.from_s = -86400;
    long_lived.to_s = 86400;
    certificate_ = make(name_, *key_, *key_, nullptr, long_lived);
    write(folder_.file(name_ + ".pem"), *certificate_);
  }

  file_names issue(const std::string& file, const wish& w = {}) const {
    const owned_key key(EVP_EC_gen("P-256"));
    const auto made = make(w.common_name, *key, *key_, certificate_.get(), w);
    const file_names names{folder_.file(file + ".pem"), folder_.file(file + ".key"),
                           folder_.file(name_ + ".pem")};
    write(names.certificate, *made);
    FILE* const out = std::fopen(names.key.c_str(), "w");
    if (out == nullptr) std::abort();
    PEM_write_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(out);
    ::chmod(names.key.c_str(), 0600);
    return names;
  }

 private:
  static void extend(X509& c, X509* issuer, int what, const std::string& value) {
    if (value.empty()) return;
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer == nullptr ? &c : issuer, &c, nullptr, nullptr, 0);
    X509_EXTENSION* const e = X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str());
    if (e == nullptr) std::abort();
    X509_add_ext(&c, e, -1);
    X509_EXTENSION_free(e);
  }

  // Without an issuer: an authority of itself.
  static owned_certificate make(const std::string& name, EVP_PKEY& key, EVP_PKEY& signing,
                                X509* issuer, const wish& w) {
    static long serial = 0;
    owned_certificate c(X509_new());
    X509_set_version(c.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(c.get()), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(c.get()), w.from_s);
    X509_gmtime_adj(X509_getm_notAfter(c.get()), w.to_s);
    X509_set_pubkey(c.get(), &key);
    X509_NAME* const subject = X509_get_subject_name(c.get());
    if (!name.empty()) {
      X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                                 reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    }
    X509_set_issuer_name(c.get(), issuer == nullptr ? subject : X509_get_subject_name(issuer));
    extend(*c, issuer, NID_basic_constraints, issuer == nullptr ? "critical,CA:TRUE" : "CA:FALSE");
    if (issuer != nullptr) {
      extend(*c, issuer, NID_ext_key_usage, w.usage);
      extend(*c, issuer, NID_subject_alt_name, w.alternative);
    }
    X509_sign(c.get(), &signing, EVP_sha256());
    return c;
  }

  static void write(const std::string& path, X509& c) {
    FILE* const out = std::fopen(path.c_str(), "w");
    if (out == nullptr) std::abort();
    PEM_write_X509(out, &c);
    std::fclose(out);
  }

  const scratch_folder& folder_;
  const std::string name_;
  owned_key key_;
  owned_certificate certificate_;
};

}  // namespace moetier::tls::toy
