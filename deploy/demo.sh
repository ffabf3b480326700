#!/usr/bin/env bash
# The demo from nothing: installs what the product needs, builds it, then lets deploy/demo/demo.py
# start a coordinator and three workers, generate text whose every MoE layer the tier computes,
# compare it with the expected text and stop everything. Arguments go to demo.py; its exit code is
# this script's: 0 only on a full match.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

deploy/setup.sh product

# One build directory serves demo and tests: whichever comes second finds the product built. A
# directory that already builds the tests keeps them; `product` builds none of them.
build=build/release
[ -f "$build/build.ninja" ] || without_tests=-DMOETIER_BUILD_TESTS=OFF
cmake --preset release ${without_tests:-}
cmake --build --preset release --target product

exec /usr/bin/python3 deploy/demo/demo.py --bin "$PWD/$build/bin" "$@"
