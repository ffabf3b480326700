#include "actors/cli/bench_document.hpp"

#include <sys/utsname.h>

#include "actors/build_info.hpp"

namespace moetier::cli {

nlohmann::ordered_json bench_document(std::string_view bench) {
  utsname host{};
  const bool named = ::uname(&host) == 0;
  return {{"schema", "moetier.bench/1"},
          {"bench", bench},
          {"version", this_build().version},
          {"commit", this_build().commit},
          {"host", named ? host.nodename : "unknown"}};
}

}  // namespace moetier::cli
