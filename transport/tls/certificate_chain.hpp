#pragma once
// A certificate with its key and the authority that vouches for it, parsed from PEM text and
// matched with each other: the key belongs to the certificate, the authority issued it, it is valid
// now and meant for what it is used for. OpenSSL's own words never leave this file. Thread: any.

#include <cstdint>
#include <string>
#include <vector>

#include "schemas/base/error.hpp"
#include "transport/tls/certificate_files.hpp"
#include "transport/tls/openssl_owned.hpp"

namespace moetier::tls {

// What our own certificate is shown as.
enum class role : std::uint8_t { server, client, both };

struct pem_texts {
  std::string certificate;  // the leaf first, then what leads to the authority
  std::string key;
  std::string authority;
};

struct certificate_chain {
  owned_certificate leaf;
  std::vector<owned_certificate> between;
  owned_key key;
  std::vector<owned_certificate> authorities;
  std::string common_name;
  std::int64_t not_after_s = 0;  // Unix time, of what ends first
};

// `now_s`: Unix time. reason::certificate_unusable names the file and what is wrong with it.
expected<certificate_chain> parse_chain(const pem_texts& texts, const file_names& files, role as,
                                        std::int64_t now_s);

// Each thing that parse_chain() asks for by itself, for who tells a user all that is wrong with the
// files. What a certificate is meant for is left out: that is a question of the side it stands on.
struct chain_facts {
  std::string common_name;    // as common_name_of() says
  std::int64_t begins_s = 0;  // Unix time, of the certificate
  std::int64_t ends_s = 0;    // of what ends first on the way from it to the authority
  bool key_matches = false;   // the key belongs to the certificate
  std::string chain_problem;  // why no authority vouches for it, at any time; "" if one does
};

// Fails as parse_chain() does where a text is not what it should be.
expected<chain_facts> examine_chain(const pem_texts& texts, const file_names& files,
                                    std::int64_t now_s);

// The one common name, 1 to 64 printable ASCII characters; "" if it has none such.
std::string common_name_of(const X509& certificate);
// A closed list of sentences for X509_V_ERR_* codes.
const char* words_of_verify(long code) noexcept;

}  // namespace moetier::tls
