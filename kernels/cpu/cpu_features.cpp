#include "kernels/backend.hpp"

namespace moetier::kernels {

cpu_features detect_cpu_features() noexcept {
  // The compiler's run time also asks the system whether it keeps the wide registers.
  return {.avx2 = __builtin_cpu_supports("avx2") != 0,
          .fma = __builtin_cpu_supports("fma") != 0,
          .avx512f = __builtin_cpu_supports("avx512f") != 0,
          .f16c = __builtin_cpu_supports("f16c") != 0};
}

}  // namespace moetier::kernels
