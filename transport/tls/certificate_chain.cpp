#include "transport/tls/certificate_chain.hpp"

#include <algorithm>
#include <ctime>
#include <optional>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <fmt/core.h>

namespace moetier::tls {
namespace {

constexpr std::size_t k_certificates_max = 64;  // of one file

int no_password(char*, int, int, void*) { return -1; }  // nobody is asked on a terminal

owned_bio reader_of(const std::string& text) {
  return owned_bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

expected<std::vector<owned_certificate>> read_certificates(const std::string& text,
                                                           const std::string& file) {
  std::vector<owned_certificate> all;
  const owned_bio from = reader_of(text);
  while (owned_certificate one{PEM_read_bio_X509(from.get(), nullptr, no_password, nullptr)}) {
    all.push_back(std::move(one));
    if (all.size() > k_certificates_max) {
      return fail(reason::certificate_unusable, file, "it holds more than 64 certificates");
    }
  }
  // The end of the file is told as "no start line"; anything else is damage.
  const unsigned long why = ERR_peek_last_error();
  ERR_clear_error();
  if (all.empty() || ERR_GET_REASON(why) != PEM_R_NO_START_LINE) {
    return fail(reason::certificate_unusable, file, "it is no PEM file of certificates");
  }
  return all;
}

expected<owned_key> read_key(const std::string& text, const std::string& file) {
  owned_key key(PEM_read_bio_PrivateKey(reader_of(text).get(), nullptr, no_password, nullptr));
  ERR_clear_error();
  if (key != nullptr) return key;
  const bool locked = text.find("ENCRYPTED") != std::string::npos;
  return fail(reason::certificate_unusable, file,
              locked ? "its key is locked with a password, which nobody is here to enter"
                     : "it is no PEM file of a private key");
}

expected<certificate_chain> read_chain(const pem_texts& texts, const file_names& files) {
  certificate_chain chain;
  auto shown = read_certificates(texts.certificate, files.certificate);
  if (!shown) return unexpected_error(shown.error());
  auto key = read_key(texts.key, files.key);
  if (!key) return unexpected_error(key.error());
  auto authorities = read_certificates(texts.authority, files.authority);
  if (!authorities) return unexpected_error(authorities.error());
  chain.leaf = std::move(shown->front());
  for (std::size_t i = 1; i < shown->size(); ++i) chain.between.push_back(std::move((*shown)[i]));
  chain.key = std::move(*key);
  chain.authorities = std::move(*authorities);
  return chain;
}

bool key_belongs(const certificate_chain& chain) {
  const bool fits = X509_check_private_key(chain.leaf.get(), chain.key.get()) == 1;
  ERR_clear_error();
  return fits;
}

std::int64_t seconds_of(const ASN1_TIME* time) {
  std::tm when{};
  if (ASN1_TIME_to_tm(time, &when) != 1) return 0;
  return timegm(&when);
}

std::int64_t end_of(const X509& certificate) {
  return seconds_of(X509_get0_notAfter(&certificate));
}

struct walked {
  long code = X509_V_OK;    // or why the chain does not lead to its authorities
  std::int64_t ends_s = 0;  // Unix time, of what ends first on the way
};

// Without a purpose: for any. Without a time: at any.
walked verify(const certificate_chain& chain, std::optional<int> purpose,
              std::optional<std::int64_t> now_s) {
  const owned_store store(X509_STORE_new());
  for (const auto& a : chain.authorities) X509_STORE_add_cert(store.get(), a.get());
  STACK_OF(X509)* const between = sk_X509_new_null();
  for (const auto& b : chain.between) sk_X509_push(between, b.get());
  const owned_store_context walk(X509_STORE_CTX_new());
  X509_STORE_CTX_init(walk.get(), store.get(), chain.leaf.get(), between);
  X509_VERIFY_PARAM* const wish = X509_STORE_CTX_get0_param(walk.get());
  if (now_s) X509_VERIFY_PARAM_set_time(wish, static_cast<std::time_t>(*now_s));
  if (!now_s) X509_VERIFY_PARAM_set_flags(wish, X509_V_FLAG_NO_CHECK_TIME);
  if (purpose) X509_VERIFY_PARAM_set_purpose(wish, *purpose);
  const bool fine = X509_verify_cert(walk.get()) == 1;
  walked seen{fine ? X509_V_OK : X509_STORE_CTX_get_error(walk.get()), end_of(*chain.leaf)};
  const STACK_OF(X509)* const way = X509_STORE_CTX_get0_chain(walk.get());
  for (int i = 0; i < sk_X509_num(way); ++i) {
    seen.ends_s = std::min(seen.ends_s, end_of(*sk_X509_value(way, i)));
  }
  sk_X509_free(between);
  ERR_clear_error();
  return seen;
}

}  // namespace

std::string common_name_of(const X509& certificate) {
  const X509_NAME* const subject = X509_get_subject_name(&certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0) return {};
  const ASN1_STRING* const value = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
  const std::string name(reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
                         static_cast<std::size_t>(ASN1_STRING_length(value)));
  const bool printable =
      std::all_of(name.begin(), name.end(), [](char c) { return c >= 0x20 && c <= 0x7e; });
  return printable && name.size() <= 64 ? name : std::string();
}

const char* words_of_verify(long code) noexcept {
  switch (code) {
    case X509_V_ERR_CERT_HAS_EXPIRED: return "it has expired";
    case X509_V_ERR_CERT_NOT_YET_VALID: return "it is not valid yet";
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE: return "the zone's authority did not issue it";
    case X509_V_ERR_INVALID_PURPOSE: return "it is not meant for this side of a link";
    case X509_V_ERR_INVALID_CA: return "its issuer is no authority";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH: return "it is of another host";
    case X509_V_ERR_EE_KEY_TOO_SMALL:
    case X509_V_ERR_CA_KEY_TOO_SMALL:
    case X509_V_ERR_CA_MD_TOO_WEAK: return "its key or its signature is too weak";
    default: return "it cannot be verified";
  }
}

expected<certificate_chain> parse_chain(const pem_texts& texts, const file_names& files, role as,
                                        std::int64_t now_s) {
  auto read = read_chain(texts, files);
  if (!read) return unexpected_error(read.error());
  certificate_chain chain = std::move(*read);
  if (!key_belongs(chain)) {
    return fail(reason::certificate_unusable, files.key,
                fmt::format("the key does not belong to the certificate {}", files.certificate));
  }
  for (const auto& a : chain.authorities) {
    if (X509_check_ca(a.get()) == 0) {
      return fail(reason::certificate_unusable, files.authority,
                  "it holds a certificate that may not issue others");
    }
  }
  chain.common_name = common_name_of(*chain.leaf);
  if (chain.common_name.empty()) {
    return fail(reason::certificate_unusable, files.certificate,
                "it has no common name of 1 to 64 printable characters");
  }
  for (const auto& [wanted, purpose] : {std::pair(as != role::client, X509_PURPOSE_SSL_SERVER),
                                        std::pair(as != role::server, X509_PURPOSE_SSL_CLIENT)}) {
    if (!wanted) continue;
    if (const long code = verify(chain, purpose, now_s).code; code != X509_V_OK) {
      return fail(reason::certificate_unusable, files.certificate, words_of_verify(code));
    }
  }
  chain.not_after_s = end_of(*chain.leaf);
  for (const auto& b : chain.between) chain.not_after_s = std::min(chain.not_after_s, end_of(*b));
  return chain;
}

expected<chain_facts> examine_chain(const pem_texts& texts, const file_names& files,
                                    std::int64_t now_s) {
  const auto chain = read_chain(texts, files);
  if (!chain) return unexpected_error(chain.error());
  // Of two authorities of one name and key, the one that is valid now counts.
  walked way = verify(*chain, std::nullopt, now_s);
  if (way.code != X509_V_OK) way = verify(*chain, std::nullopt, std::nullopt);
  return chain_facts{
      .common_name = common_name_of(*chain->leaf),
      .begins_s = seconds_of(X509_get0_notBefore(chain->leaf.get())),
      .ends_s = way.ends_s,
      .key_matches = key_belongs(*chain),
      .chain_problem = way.code == X509_V_OK ? "" : words_of_verify(way.code),
  };
}

}  // namespace moetier::tls
