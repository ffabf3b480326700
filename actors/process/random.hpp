#pragma once
// 64 bits nobody can guess, from the system: incarnations and seeds. Only shells draw them; cores
// get values. Thread: any.

#include <cstdint>

namespace moetier {

std::uint64_t random_bits();

}  // namespace moetier
