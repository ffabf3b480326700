#!/usr/bin/env bash
# All tests from nothing: installs what is missing, configures, builds, runs ctest. Quick when
# nothing is to do.
#
#   tests/run.sh           release build, every test
#   tests/run.sh --full    also long simulations and fuzzing (MOETIER_FULL=1), and every test under
#                          ASAN and UBSAN
#
# Tests that start processes or watch the clock are SERIAL in CMake and run alone; the others run
# two at a time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

presets=(release)
case "${1:-}" in
  "") ;;
  --full) presets=(asan release); export MOETIER_FULL=1 ;;
  *) echo "tests/run.sh: unknown argument '$1' (known: --full)" >&2; exit 1 ;;
esac

deploy/setup.sh product tests

for preset in "${presets[@]}"; do
  cmake --preset "$preset" -DMOETIER_BUILD_TESTS=ON
  cmake --build --preset "$preset"
  ctest --test-dir "build/$preset" --output-on-failure --no-tests=error -j2
done
