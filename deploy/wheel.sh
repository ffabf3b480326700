#!/usr/bin/env bash
# The Python package as one wheel: with libmoetier.so.1, UCX, and all else that these need but the C
# and C++ libraries of the system. Installs with pip beside NumPy; compiles and fetches nothing.
#
#   deploy/wheel.sh OUTDIR      makes it from build/release (builds the product first)
#
# MOETIER_BUILD names another build directory, which is taken as it is. Prints the wheel's path.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[ $# -eq 1 ] && [ "${1#-}" = "$1" ] || { echo "wheel: needs OUTDIR" >&2; exit 1; }
mkdir -p "$1"

command -v patchelf >/dev/null || { echo "wheel: needs patchelf (deploy/setup.sh tests installs it)" >&2; exit 2; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$here/deploy/bundle.sh" "$scratch/bundle" >&2
/usr/bin/python3 -B "$here/deploy/wheel.py" "$scratch/bundle" "$1"
