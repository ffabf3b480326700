#!/usr/bin/env bash
# The wheel in an environment of its own, with nothing of this build in its reach: it installs without
# a network, calls a tier by UCX, and its process has loaded the wheel's libraries or the system's, no
# others.
set -euo pipefail
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$1
scratch=$(mktemp -d)
tier=
trap '[ -z "$tier" ] || kill "$tier" 2>/dev/null || true; rm -rf "$scratch"' EXIT

fail() {
  echo "wheel_test: $1" >&2
  exit 1
}

MOETIER_BUILD=$build "$source_dir/deploy/wheel.sh" "$scratch/out" >"$scratch/path"
wheel=$(cat "$scratch/path")
[ -f "$wheel" ] || fail "no wheel at $wheel"
/usr/bin/python3 -m venv --system-site-packages "$scratch/venv"
python=$scratch/venv/bin/python
env -i "$python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps "$wheel"

"$build/bin/moetier" up --model "$source_dir/deploy/demo/model" --workers 2 --rpc-port 0 \
  --set transport.carrier=ucx -o json \
  >"$scratch/ready" 2>"$scratch/log" &
tier=$!
waited=0
until grep -qs '"moetier.ready/1"' "$scratch/ready"; do
  kill -0 "$tier" 2>/dev/null && [ "$waited" -lt 300 ] || { cat "$scratch/log" >&2; fail "up is not ready"; }
  waited=$((waited + 1))
  sleep 0.2
done
address=$(sed -n 's/.*"moetier.ready\/1","address":"\([^"]*\)".*/\1/p' "$scratch/ready")

cd "$scratch"
env -i "$python" "$source_dir/transport/client/examples/layer_call.py" "$address"
env -i "$python" - "$address" "$scratch/venv" <<'PYTHON'
import pathlib, re, sys
import moetier, moetier.transformers
folder = pathlib.Path(moetier.__file__).resolve().parent
assert folder.is_relative_to(pathlib.Path(sys.argv[2]).resolve()), folder
before = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
moetier.connect(sys.argv[1]).close()
with moetier.connect(sys.argv[1]) as tier, tier.session(max_tokens=8):
    now = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
system = re.compile(r"(ld-linux-x86-64|lib(c|m|dl|pthread|rt|resolv|util|anl|nsl|stdc\+\+|gcc_s))\.so")
strange = [path for path in now - before
           if not pathlib.Path(path).is_relative_to(folder) and not system.match(pathlib.Path(path).name)]
assert not strange, strange
ours = {pathlib.Path(path).name for path in now if pathlib.Path(path).is_relative_to(folder)}
assert {"libmoetier.so.1", "libmoetier_ucx.so"} <= ours, ours
print("loaded of the wheel:", len(ours), "libraries")
PYTHON
kill -TERM "$tier"
wait "$tier" || fail "up ended with $?"
tier=
echo "wheel_test: $(basename "$wheel"), $(du -k "$wheel" | cut -f1) KiB"
