#!/usr/bin/env bash
# Installs what moetier needs from Debian 12's own packages: exactly what is missing, nothing else.
# With nothing missing it neither asks for root nor touches the network.
#
#   deploy/setup.sh              everything: product and tests
#   deploy/setup.sh product      what the product and the demo need
#   deploy/setup.sh tests        what only the tests need
#   deploy/setup.sh fuzz         what only libFuzzer needs (tests/run.sh --full)
#   deploy/setup.sh --list ...   print the packages and do nothing
#
# Ends with 0 when all packages are there, 2 when it may not install them (another system, or not
# root). Whoever has the same libraries from elsewhere sets MOETIER_SKIP_SETUP=1.
set -euo pipefail

product_packages=(
  # compiler and build
  g++ cmake ninja-build pkg-config git
  # control plane
  libcaf-dev capnproto libcapnp-dev libssl-dev
  # data plane and compute
  libucx-dev libxxhash-dev libdlpack-dev
  # configuration, logs, metrics
  libcli11-dev libyaml-cpp-dev nlohmann-json3-dev libexpected-dev libfmt-dev libspdlog-dev
  prometheus-cpp-dev libcivetweb-dev zlib1g-dev
  # the demo's attention service and the Python package
  python3 python3-numpy
)
test_packages=(
  libgtest-dev libgmock-dev librapidcheck-dev
  # the status page, looked at as a browser does
  chromium
  # makes the certificates of the security tests
  openssl
  # reads /metrics, the rules and the alerts as an operator's does
  prometheus
  # stands beside our products in `moetier bench kernels`
  libdnnl-dev
  # the wheel, and an environment to install it in
  patchelf python3-venv
)
fuzz_packages=(clang libclang-rt-14-dev)

list_only=no
wanted=()
for argument in "$@"; do
  case "$argument" in
    fuzz) wanted+=("${fuzz_packages[@]}") ;;
    --list) list_only=yes ;;
    product) wanted+=("${product_packages[@]}") ;;
    tests) wanted+=("${test_packages[@]}") ;;
    *) echo "setup: unknown argument '$argument' (known: product, tests, fuzz, --list)" >&2; exit 1 ;;
  esac
done
[ "${#wanted[@]}" -gt 0 ] || wanted=("${product_packages[@]}" "${test_packages[@]}")

if [ "$list_only" = yes ]; then
  printf '%s\n' "${wanted[@]}"
  exit 0
fi
[ -z "${MOETIER_SKIP_SETUP:-}" ] || exit 0

# Requires: $1 is one sentence that says why nothing was installed.
stop() {
  echo "setup: $1" >&2
  echo "setup: these packages of Debian 12 are needed:" >&2
  printf '  %s\n' "$2" | fold -s -w 96 >&2
  echo "setup: install them and run again; MOETIER_SKIP_SETUP=1 skips this check." >&2
  exit 2
}

system=$(. /etc/os-release 2>/dev/null && echo "${ID:-unknown} ${VERSION_ID:-}") || system=unknown
[ "$system" = "debian 12" ] ||
  stop "this system is '$system', not Debian 12, so nothing was installed." "${wanted[*]}"

installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null |
  sed -n 's/ installed$//p' || true)
missing=()
for package in "${wanted[@]}"; do
  grep -qxF "$package" <<<"$installed" || missing+=("$package")
done
[ "${#missing[@]}" -gt 0 ] || exit 0

[ "$(id -u)" -eq 0 ] ||
  stop "packages are missing and this is not root, so nothing was installed." "${missing[*]}"

echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt=(apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -o Dpkg::Use-Pty=0)
"${apt[@]}" update </dev/null
# Some packages start a service when they are installed; the tests start what they need themselves.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi
"${apt[@]}" install --no-install-recommends "${missing[@]}" </dev/null
# Nor does it start with the machine from now on.
case " ${missing[*]} " in
  *" prometheus "*) deb-systemd-helper disable prometheus.service >/dev/null 2>&1 || true ;;
esac
