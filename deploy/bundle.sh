#!/usr/bin/env bash
# A tree that runs where none of the packages are: binaries, all shared libraries but the C library,
# UCX with its modules, the Python package, the demo with its model. It runs from wherever it is
# moved to, on Debian 12, Ubuntu 24.04 and newer ones of both.
#
#   deploy/bundle.sh OUTDIR            makes it from build/release (builds the product first)
#   deploy/bundle.sh --check OUTDIR    starts it with an empty environment, serves the demo's model,
#                                      compares a layer, and looks at what its processes have loaded
#
# MOETIER_BUILD names another build directory, which is taken as it is. OUTDIR must not exist.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

limit_mib=64
# What every such system has, in the version that its kernel and loader want.
of_the_system='^(ld-linux-x86-64|libc|libm|libdl|libpthread|librt|libresolv|libutil|libanl|libnsl|libmvec)\.so'
# What comes with a GPU's driver, and is asked for by modules that only serve where one is.
of_the_driver='[[:space:]/](libcuda|libnvidia-[a-z-]+)\.so'
# The compiler's own: for our programs only, not for a Python that loads the client library.
of_the_compiler='^(libstdc\+\+|libgcc_s)\.so'

fail() {
  echo "bundle: $1" >&2
  exit 1
}

# The libraries that $@ need, with what those need: "name path" lines.
needed() {
  local file listed all=
  for file in "$@"; do
    listed=$(ldd "$file" | grep -vE "$of_the_driver")
    ! grep "not found" <<<"$listed" >&2 || fail "$file needs what is not here"
    all+=$(awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' <<<"$listed")$'\n'
  done
  sort -u <<<"$all" | grep -vE "$of_the_system|^$"
}

# A module that names a folder of the system for its libraries names the bundle's lib/ instead: in
# place, as long as the old name, since slashes more say the same.
stay_inside() {
  local old new='$ORIGIN/..'
  old=$(readelf -d "$1" | sed -n 's/.*R\(UN\)\?PATH.*\[\(.*\)\]$/\2/p')
  [ -n "$old" ] || return 0
  [ "${#old}" -ge "${#new}" ] || fail "no room for $new in $1"
  while [ "${#new}" -lt "${#old}" ]; do new=$new/; done
  LC_ALL=C sed -i "s#$old\x00#$new\x00#" "$1"
  readelf -d "$1" | grep -qF "[$new]" || fail "$1 still looks in $old"
}

make_bundle() {
  out=$1
  local build=${MOETIER_BUILD:-}
  [ ! -e "$out" ] || fail "$out is there already"
  if [ -z "$build" ]; then
    build=$here/build/release
    local without_tests=
    [ -f "$build/build.ninja" ] || without_tests=-DMOETIER_BUILD_TESTS=OFF
    (cd "$here" && cmake --preset release ${without_tests:-} && cmake --build --preset release --target product)
  fi
  local ucx_modules=()
  local ucs
  ucs=$(ldd "$build/lib/libmoetier_ucx.so" | awk '$1 ~ /^libucs\.so/ { print $3 }')
  [ -n "$ucs" ] || fail "libmoetier_ucx.so shows no libucs"
  # UCX opens its modules from ucx/ beside libucs, under names that end as its own does.
  mapfile -t ucx_modules < <(find "$(dirname "$(readlink -f "$ucs")")/ucx" -name "libuc[mt]_*.${ucs##*/libucs.}" | sort)
  [ "${#ucx_modules[@]}" -gt 0 ] || fail "no UCX modules beside $ucs"
  # What our programs find counts; a module by itself may find another UCX in the system.
  local libraries of_modules
  libraries=$(needed "$build/bin/moetier" "$build/lib/libmoetier_ucx.so" "$build/lib/libmoetier.so.1")
  of_modules=$(needed "${ucx_modules[@]}")

  trap 'rm -rf "$out"' EXIT  # half a bundle would stand in the way of the next
  mkdir -p "$out/bin" "$out/lib/runtime" "$out/lib/ucx" "$out/lib/python" "$out/demo"
  cp "$build/bin/moetier" "$out/bin/"
  cp -L "$build/lib/libmoetier_ucx.so" "$build/lib/libmoetier.so.1" "$out/lib/"
  cp -rL "$build/lib/python/moetier" "$out/lib/python/"
  rm -rf "$out/lib/python/moetier/__pycache__"
  local module
  for module in "${ucx_modules[@]}"; do
    cp -L "$module" "$out/lib/ucx/"
    stay_inside "$out/lib/ucx/${module##*/}"
  done
  local name path to
  while read -r name path; do
    to=$out/lib
    ! grep -qE "$of_the_compiler" <<<"$name" || to=$out/lib/runtime
    [ -e "$out/lib/$name" ] || cp -L "$path" "$to/$name"
  done <<<"$libraries
$of_modules"
  find "$out/bin" "$out/lib" -type f \( -name '*.so*' -o -name moetier \) -exec strip --strip-unneeded {} +
  cp "$here"/deploy/demo/*.py "$out/demo/"
  cp -r "$here/deploy/demo/model" "$here/deploy/demo/vectors" "$out/demo/"
  cp "$here/README.md" "$here/CHANGELOG.md" "$here/LICENSE" "$out/"
  cp "${BASH_SOURCE[0]}" "$out/bundle.sh"
  trap - EXIT
  echo "bundle: $out, $(du -sm "$out" | cut -f1) MiB, $(find "$out/lib" -name '*.so*' | wc -l) libraries"
}

# Every library that process $1 has loaded is of the bundle or of the system.
loads_nothing_else() {
  local path
  while read -r path; do
    grep -qE "$of_the_system" <<<"${path##*/}" || fail "process $1 has loaded $path"
  done < <(awk '$6 ~ /\.so/ { print $6 }' "/proc/$1/maps" | sort -u |
    grep -vE "$of_the_driver" | grep -vF "$(readlink -f "$out")/" || true)
}

check_bundle() {
  out=$(cd "$1" && pwd -P)
  local size
  size=$(du -sm "$out" | cut -f1)
  [ "$size" -lt "$limit_mib" ] || fail "$out has $size MiB; the limit is $limit_mib"
  cd /
  env -i "$out/bin/moetier" --version
  scratch=$(mktemp -d)
  # $tier is empty once it has ended.
  trap '[ -z "${tier:-}" ] || kill "$tier" 2>/dev/null || true; rm -rf "$scratch"' EXIT
  env -i TMPDIR="$scratch" "$out/bin/moetier" up --model "$out/demo/model" --workers 2 --rpc-port 0 -o json "${@:2}" \
    >"$scratch/ready" 2>"$scratch/log" &
  tier=$!
  local waited=0
  until grep -qs '"moetier.ready/1"' "$scratch/ready"; do
    kill -0 "$tier" 2>/dev/null && [ "$waited" -lt 600 ] || { cat "$scratch/log" >&2; fail "up is not ready"; }
    waited=$((waited + 1))
    sleep 0.1
  done
  local address pid
  address=$(sed -n 's/.*"moetier.ready\/1","address":"\([^"]*\)".*/\1/p' "$scratch/ready")
  for via in gateway direct; do
    env -i "$out/bin/moetier" forward --address "$address" --layer 0 --via "$via" --check \
      --in "$out/demo/vectors/moe_vectors.safetensors" --prefix novel.layer0.
  done
  if python3 -c 'import numpy' 2>/dev/null; then
    PYTHONPATH=$out/lib/python PYTHONDONTWRITEBYTECODE=1 python3 -c \
      'import sys, moetier; moetier.connect(sys.argv[1]).close()' "$address"
  fi
  for pid in $(grep -o '"pid":[0-9]*' "$scratch/ready" | cut -d: -f2); do loads_nothing_else "$pid"; done
  kill -TERM "$tier"
  wait "$tier" || fail "up ended with $?"
  tier=
  echo "bundle: $out runs from here, $size MiB"
}

case "${1:-}" in
  --check) [ $# -ge 2 ] || fail "--check needs the bundle's folder"; check_bundle "${@:2}" ;;
  "" | -*) fail "needs OUTDIR, or --check OUTDIR" ;;
  *) make_bundle "$1" ;;
esac
