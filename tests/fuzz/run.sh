#!/usr/bin/env bash
# Runs fuzz targets on libFuzzer, one after the other, from their own seeds and past findings, and
# says what each did. Ends with 1 if any found something; what it found lies in build/fuzz/found/.
#
#   tests/fuzz/run.sh                     all of them, 60 s each
#   tests/fuzz/run.sh SECONDS TARGET...   these (names without fuzz_)
#
# A finding is also an input that takes 100 ms of processor (10 ms without sanitizers), an allocation
# of 64 MiB or a process of 1 GiB. Entropic scheduling is off: it took half the time of short
# sequences.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

seconds=${1:-60}
targets=("${@:2}")
bin=build/fuzz/bin
if [ "${#targets[@]}" -eq 0 ]; then
  for program in "$bin"/fuzz_*; do targets+=("${program##*/fuzz_}"); done
fi

found=0
for target in "${targets[@]}"; do
  program=$bin/fuzz_$target
  work=$(mktemp -d)
  mkdir -p "$work/corpus" build/fuzz/found
  "$program" --write-seeds="$work/corpus" >/dev/null
  past=tests/fuzz/findings/$target
  [ ! -d "$past" ] || cp "$past"/* "$work/corpus/"
  if "$program" -max_total_time="$seconds" -entropic=0 -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=64 \
    -print_final_stats=1 -artifact_prefix="build/fuzz/found/$target-" "$work/corpus" \
    >"$work/log" 2>&1; then
    verdict="no finding"
  else
    verdict="FINDING"
    found=1
    cp "$work/log" "build/fuzz/found/$target.log"
  fi
  awk -v target="$target" -v verdict="$verdict" '
    /^stat::number_of_executed_units/ { runs = $2 }
    /^stat::average_exec_per_sec/ { pace = $2 }
    / cov: / { for (i = 1; i < NF; ++i) if ($i == "cov:") coverage = $(i + 1) }
    END { printf "%-22s %9d runs %7d/s %6d edges  %s\n", target, runs, pace, coverage, verdict }
  ' "$work/log"
  rm -rf "$work"
done
exit "$found"
