#!/usr/bin/env bash
# Makes the Python environment in which moetier.transformers is compared with the transformers
# library and torch: outside the repository, 4.6 GB, from PyPI. No other test needs it.
#
#   tests/transformers_venv.sh [DIR]      DIR: ~/.cache/moetier/transformers unless given
#   MOETIER_FULL=1 ctest --test-dir build/release -R scenario_transformers_models --verbose
#
# PyPI's torch for x86-64 is the one with CUDA, which does not load without its libraries; what only
# a GPU's compiler needs (triton, the CUDA bindings) is left out, so packages are listed one by one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

venv=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/moetier/transformers}
python=/usr/bin/python3
"$python" -c 'import ensurepip' 2>/dev/null ||
  { echo "transformers_venv: $python makes no environments; install python3-venv" >&2; exit 2; }
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
"$venv/bin/python" -m pip install --disable-pip-version-check --quiet --no-deps --requirement transformers_requirements.txt
"$venv/bin/python" -c 'import torch, transformers; print("torch", torch.__version__, "transformers", transformers.__version__)'
echo "transformers_venv: $venv"
