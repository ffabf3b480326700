#include <initializer_list>
#include <utility>

#include "actors/doctor/certificates.hpp"
#include "transport/tls/certificate_chain.hpp"
#include "transport/tls/credential.hpp"
#include "transport/tls/secret_file.hpp"

namespace moetier::doctor {

certificate_facts probe_certificates(std::string zone, const certificate_paths& paths) {
  certificate_facts f{.zone = std::move(zone), .paths = paths};
  f.now = tls::unix_now_s();
  const tls::file_names names{paths.certificate, paths.key, paths.authority};
  if (!names.complete()) return f;
  tls::pem_texts texts;
  for (const auto& [name, text] :
       {std::pair(&names.certificate, &texts.certificate),
        std::pair(&names.authority, &texts.authority), std::pair(&names.key, &texts.key)}) {
    // The key too, whoever else may read it: its mode is a finding of its own.
    auto file = tls::read_small_file(*name, tls::secrecy::open);
    if (!file) {
      f.problem = file.error().text;
      return f;
    }
    *text = std::move(file->text);
    if (text == &texts.key) f.key_mode = file->mode;
  }
  auto seen = tls::examine_chain(texts, names, f.now);
  if (!seen) {
    f.problem = seen.error().text;
    return f;
  }
  f.common_name = std::move(seen->common_name);
  f.begins = seen->begins_s;
  f.ends = seen->ends_s;
  f.key_matches = seen->key_matches;
  f.chain_problem = std::move(seen->chain_problem);
  return f;
}

}  // namespace moetier::doctor
