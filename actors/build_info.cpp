#include "actors/build_info.hpp"

#include "moetier_version.hpp"

namespace moetier {

const build_info& this_build() noexcept {
  static constexpr build_info k_build{k_version,       k_commit,       k_compiler,
                                      k_build_type,    k_cuda_version, k_caf_version,
                                      k_capnp_version, k_ucx_version};
  return k_build;
}

}  // namespace moetier
