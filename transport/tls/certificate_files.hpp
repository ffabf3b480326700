#pragma once
// Where the three files of one link's identity lie: the certificate (with what leads to the
// authority behind it), its key, and the authority of the zone. PEM each. Thread: any (a value).

#include <string>

namespace moetier::tls {

struct file_names {
  std::string certificate{};
  std::string key{};
  std::string authority{};

  bool empty() const noexcept { return certificate.empty() && key.empty() && authority.empty(); }
  bool complete() const noexcept {
    return !certificate.empty() && !key.empty() && !authority.empty();
  }
};

}  // namespace moetier::tls
