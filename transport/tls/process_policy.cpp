#include "transport/tls/process_policy.hpp"

#include <string_view>

#include <openssl/bio.h>
#include <openssl/conf.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "transport/tls/openssl_owned.hpp"

namespace moetier::tls {
namespace {

constexpr std::string_view k_policy =
    "openssl_conf = moetier\n"
    "[moetier]\n"
    "ssl_conf = links\n"
    "[links]\n"
    "system_default = newest\n"
    "[newest]\n"
    "MinProtocol = TLSv1.3\n"
    "Options = -SessionTicket\n";

using owned_conf = std::unique_ptr<CONF, freed_by<NCONF_free>>;

}  // namespace

bool demand_tls_1_3() noexcept {
  if (OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr) != 1) return false;
  OPENSSL_load_builtin_modules();
  const owned_conf conf(NCONF_new(nullptr));
  const owned_bio text(BIO_new_mem_buf(k_policy.data(), static_cast<int>(k_policy.size())));
  long line = 0;
  const bool taken = conf != nullptr && text != nullptr &&
                     NCONF_load_bio(conf.get(), text.get(), &line) > 0 &&
                     CONF_modules_load(conf.get(), nullptr, 0) > 0;
  ERR_clear_error();
  if (!taken) return false;
  const owned_context probe(SSL_CTX_new(TLS_method()));
  return probe != nullptr && SSL_CTX_get_min_proto_version(probe.get()) == TLS1_3_VERSION;
}

}  // namespace moetier::tls
