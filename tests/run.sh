#!/usr/bin/env bash
# All tests from nothing: installs what is missing, configures, builds, runs ctest. Quick when
# nothing is to do.
#
#   tests/run.sh           release build, every test
#   tests/run.sh --full    also long simulations (MOETIER_FULL=1), every test under ASAN and UBSAN,
#                          all without CAF under TSAN, and every fuzz target on libFuzzer for a
#                          minute, where clang is there
#
# Tests that start processes or watch the clock are SERIAL in CMake and run alone; the others run
# two at a time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

presets=(release)
case "${1:-}" in
  "") ;;
  --full) presets=(asan tsan release); export MOETIER_FULL=1 ;;
  *) echo "tests/run.sh: unknown argument '$1' (known: --full)" >&2; exit 1 ;;
esac

deploy/setup.sh product tests

for preset in "${presets[@]}"; do
  cmake --preset "$preset" -DMOETIER_BUILD_TESTS=ON
  cmake --build --preset "$preset"
  ctest --test-dir "build/$preset" --output-on-failure --no-tests=error -j2
done

[ -n "${MOETIER_FULL:-}" ] || exit 0
deploy/setup.sh fuzz || true  # it says what lacks
if command -v clang++-14 >/dev/null; then
  cmake --preset fuzz
  cmake --build --preset fuzz
  tests/fuzz/run.sh 60
else
  echo "tests/run.sh: no clang++-14: the fuzz targets ran on their own driver alone" >&2
fi
