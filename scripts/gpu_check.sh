#!/usr/bin/env bash
# Everything that needs a GPU: the kernels' own check, every test case named Cuda, every architecture's logits against
# transformers' (float32 and bfloat16), and the demos' configs on the device.
#
#   scripts/gpu_check.sh [BUILD_DIR]
#
# Without BUILD_DIR (or REPLAYEVAL_BUILD_DIR): sets up and builds the preset `cuda`. With it: runs the programs in
# BUILD_DIR/bin as they are, nothing is built and no path of the building machine is used. Shared libraries are then looked
# for in BUILD_DIR/lib (scripts/pack_build.sh fills it) and in the torch wheel that python3 finds.
#
# REPLAYEVAL_GPU_OUT: where the results go (default results/gpu-check). Exit code 0 only if every part passed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/lib/stages.sh
. scripts/lib/stages.sh
# shellcheck source=scripts/lib/gpu.sh
. scripts/lib/gpu.sh

build_dir=${1:-${REPLAYEVAL_BUILD_DIR:-}}
if [[ -z $build_dir ]]; then
  scripts/setup.sh --preset cuda
  scripts/build.sh cuda
  build_dir=build/cuda
fi
[[ -x $build_dir/bin/replayeval ]] || fail "no program $build_dir/bin/replayeval: build the preset cuda first"
require_gpu
use_libraries_of "$build_dir"
export REPLAYEVAL_BUILD_DIR=$build_dir
out=${REPLAYEVAL_GPU_OUT:-results/gpu-check}
mkdir -p "$out"

# shellcheck disable=SC2317  # called through run_part
kernel_times() { scripts/gpu_check_kernels.sh "$build_dir" bench; }

# Nothing here is timed, so it may share the GPU: racecheck waits for one core each, parity for transformers on the others.
# shellcheck disable=SC2317
correctness() {
  local code=0
  parity >"$out/parity.log" 2>&1 &
  local parity_pid=$!
  scripts/gpu_check_kernels.sh "$build_dir" tests || code=1
  other_tests || code=1
  wait "$parity_pid" || code=1
  cat "$out/parity.log"
  return "$code"
}

# shellcheck disable=SC2317
other_tests() {
  local program ran=0 failed=0
  for program in "$build_dir"/bin/*_test; do
    [[ $(basename "$program") == kernels_test ]] && continue  # correctness has run it
    cuda_cases "$program" || continue
    ran=$((ran + 1))
    say "-- $(basename "$program")"
    "$program" --gtest_filter="$CUDA_FILTER" --gtest_brief=1 || failed=1
  done
  if ((ran == 0)); then say "no test program has a case named Cuda"; return 1; fi
  return "$failed"
}

# Several files at once: most of a parity test is transformers on the CPU.
# shellcheck disable=SC2317
parity() {
  local python=python3 file failed=0
  if [[ -x .venv/bin/python ]]; then python=.venv/bin/python; fi
  local at_once=$((($(nproc) * 3 + 3) / 4))  # before OMP_NUM_THREADS, which nproc heeds
  export REPLAYEVAL REPLAYEVAL_DEVICE=cuda OMP_NUM_THREADS=1
  REPLAYEVAL=$(realpath "$build_dir")/bin/replayeval
  mkdir -p "$out/parity"
  for file in tests/eval/model/test_parity_*.py; do basename "$file" .py; done |
    xargs -P "$at_once" -I{} sh -c \
      "$python scripts/run_python_tests.py '$out/parity/{}.json' 'tests/eval/model/{}.py' >'$out/parity/{}.log' 2>&1" ||
    failed=1
  for file in tests/eval/model/test_parity_*.py; do
    file=$out/parity/$(basename "$file" .py).log
    say "-- $(basename "$file" .log): $(grep -E '^Ran ' "$file"), $(tail -n 1 "$file")"
    if ! tail -n 1 "$file" | grep -q '^OK'; then failed=1; cat "$file"; fi
  done
  return "$failed"
}

# shellcheck disable=SC2317
demo_on_device() {
  local config
  for config in demo demo-delta-rule; do
    "$build_dir/bin/replayeval" run "configs/$config.yaml" --device cuda --output "$out/$config" --overwrite
  done
}

failed=()
run_part() {  # NAME FUNCTION
  shown_stage "$1" "$2" || failed+=("$1")
}
run_part correctness correctness
run_part times kernel_times
run_part demo demo_on_device
print_stage_times
if ((${#failed[@]})); then
  say "gpu-check: FAILED: ${failed[*]}"
  exit 1
fi
say "gpu-check: passed on $(gpu_name)"
