// Certificates, keys and authorities as PEM texts, separated by a zero byte. The first byte is the
// side that they are shown on.

#include "transport/tls/certificate_chain.hpp"

#include <ctime>
#include <fstream>
#include <iterator>

#include "tests/fuzz/fuzz_target.hpp"
#include "tests/transport/tls/toy_authority.hpp"

namespace moetier::fuzz {
namespace {

// Seeds are issued now.
std::int64_t now_s() { return static_cast<std::int64_t>(std::time(nullptr)); }

std::string text_in(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

void run(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return;
  tls::pem_texts texts;
  std::string* const parts[] = {&texts.certificate, &texts.key, &texts.authority};
  std::size_t part = 0;
  for (const std::uint8_t b : bytes.subspan(1)) {
    if (b == 0 && part < 2) {
      ++part;
    } else {
      *parts[part] += static_cast<char>(b);
    }
  }
  const tls::file_names names{"cert.pem", "key.pem", "ca.pem"};
  const auto as = static_cast<tls::role>(bytes[0] % 3);
  const auto facts = tls::examine_chain(texts, names, now_s());
  const auto chain = tls::parse_chain(texts, names, as, now_s());
  if (!chain) return;
  check(facts && facts->key_matches && facts->chain_problem.empty(),
        "a chain passes that the doctor finds wrong");
  check(!chain->common_name.empty() && chain->common_name.size() <= 64, "a name of no length");
  check(chain->not_after_s >= now_s() - 1, "a chain that has ended");
}

std::vector<input> seeds() {
  const scratch_folder folder;
  const tls::toy::authority authority(folder, "zone");
  std::vector<input> all;
  const auto add = [&](std::uint8_t as, const tls::file_names& files) {
    input seed{as};
    for (const std::string& path : {files.certificate, files.key, files.authority}) {
      const std::string text = text_in(path);
      seed.insert(seed.end(), text.begin(), text.end());
      seed.push_back(0);
    }
    seed.pop_back();
    all.push_back(std::move(seed));
  };
  const tls::file_names server = authority.issue("server");
  const tls::file_names client = authority.issue("client", {.usage = "clientAuth"});
  add(0, server);
  add(1, client);
  add(0, {server.certificate, client.key, server.authority});
  add(2, authority.issue("old", {.from_s = -7200, .to_s = -3600}));
  return all;
}

}  // namespace moetier::fuzz
