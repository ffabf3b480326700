#!/usr/bin/env bash
# The relocatable bundle of build directory $1: made, moved, checked; and the checks bite.
set -euo pipefail
bundle=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/deploy/bundle.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Requires: $1 is a part of what the command, the rest of the arguments, says when it fails.
refuses() {
  local said
  if said=$("${@:2}" 2>&1); then
    echo "bundle_test: '${*:2}' did not fail" >&2
    exit 1
  fi
  grep -qF "$1" <<<"$said" || { echo "bundle_test: expected '$1', got: $said" >&2; exit 1; }
}

# A library that is not to be found, said by an ldd that has one more of them.
mkdir "$folder/tools"
printf '#!/bin/sh\n%s "$@"; printf "\\tlibnone.so.1 => not found\\n"\n' "$(command -v ldd)" >"$folder/tools/ldd"
chmod +x "$folder/tools/ldd"
refuses "needs what is not here" env PATH="$folder/tools:$PATH" MOETIER_BUILD="$1" "$bundle" "$folder/none"

# One that fails half way leaves nothing.
printf '#!/bin/sh\necho no strip >&2\nexit 1\n' >"$folder/tools/strip"
chmod +x "$folder/tools/strip"
mv "$folder/tools/ldd" "$folder/"
refuses "no strip" env PATH="$folder/tools:$PATH" MOETIER_BUILD="$1" "$bundle" "$folder/half"
[ ! -e "$folder/half" ] || { echo "bundle_test: half a bundle stays" >&2; exit 1; }

MOETIER_BUILD=$1 "$bundle" "$folder/made"
refuses "is there already" env MOETIER_BUILD="$1" "$bundle" "$folder/made"
mv "$folder/made" "$folder/moved"
"$folder/moved/bundle.sh" --check "$folder/moved"

# A library from the system, and a bundle that is too large.
mv "$folder"/moved/lib/libyaml-cpp.so.* "$folder/"
refuses "yaml-cpp" "$bundle" --check "$folder/moved"
mv "$folder"/libyaml-cpp.so.* "$folder/moved/lib/"
head -c 67108864 /dev/zero >"$folder/moved/large"
refuses "the limit is 64" "$bundle" --check "$folder/moved"
ln -s moved "$folder/link"
refuses "the limit is 64" "$bundle" --check "$folder/link"
