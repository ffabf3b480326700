#include <cpuid.h>

#include "kernels/backend.hpp"

namespace moetier::kernels {
namespace {

// Of its instructions only; clang 14's run time does not know the name.
bool has_f16c() noexcept {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

}  // namespace

cpu_features detect_cpu_features() noexcept {
  // Asked for by every routed call, and cpuid leaves a virtual machine: ten microseconds, so once.
  // The compiler's run time also asks the system whether it keeps the wide registers.
  static const cpu_features found{.avx2 = __builtin_cpu_supports("avx2") != 0,
                                  .fma = __builtin_cpu_supports("fma") != 0,
                                  .avx512f = __builtin_cpu_supports("avx512f") != 0,
                                  .f16c = __builtin_cpu_supports("avx") != 0 && has_f16c()};
  return found;
}

}  // namespace moetier::kernels
