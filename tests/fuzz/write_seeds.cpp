// A libFuzzer program's own first corpus: with --write-seeds=FOLDER it writes the target's seeds
// there, one file each, and ends. libFuzzer leaves flags that begin with -- to the target.

#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

#include "tests/fuzz/fuzz_target.hpp"

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view k_flag = "--write-seeds=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view word = (*argv)[i];
    if (!word.starts_with(k_flag)) continue;
    std::size_t number = 0;
    for (const moetier::fuzz::input& seed : moetier::fuzz::seeds()) {
      const std::string name =
          std::string(word.substr(k_flag.size())) + "/seed" + std::to_string(number++);
      std::ofstream(name, std::ios::binary)
          .write(reinterpret_cast<const char*>(seed.data()),
                 static_cast<std::streamsize>(seed.size()));
    }
    std::printf("%zu seeds\n", number);
    std::exit(number == 0 ? 1 : 0);
  }
  return 0;
}
