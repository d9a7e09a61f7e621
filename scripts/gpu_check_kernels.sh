#!/usr/bin/env bash
# The kernels' checks that need a GPU: every Cuda test, compute-sanitizer's memcheck and racecheck over a part of them
# (`tests`), and the table of kernel times (`bench`, which wants the GPU to itself); both if neither is named.
#   scripts/gpu_check_kernels.sh BUILD_DIR [tests|bench]
# Logs and bench.json go to ${OUT:-build/gpu-check}. Exit code 0 only when everything ran and passed.
set -uo pipefail
build=${1:?usage: scripts/gpu_check_kernels.sh BUILD_DIR [tests|bench]}
part=${2:-all}
out=${OUT:-build/gpu-check}
mkdir -p "$out"
tests=$build/bin/kernels_test
bench=$build/bin/replayeval_kernel_bench
# A part with every kernel in it, both modes, mixed ring positions and padded rows, and few enough launches.
sanitized='Cuda/Mamba2Bits.BufferOfOne*:Cuda/Mamba2Bits.RowsAtMixed*:Cuda/Mamba2Bits.Reconstruct*'
sanitized+=':Cuda/Mamba2Bits.LargeBatches*:Cuda/Mamba2Bits.ManyHeads*:Cuda/Mamba2Bits.AFewScanned*'
sanitized+=':Cuda/DeltaRuleBits.ManyHeads*:Cuda/DeltaRuleBits.AFewScanned*'
sanitized+=':Cuda/DeltaRuleBits.BufferOfOne*:Cuda/DeltaRuleBits.RowsAtMixed*:Cuda/DeltaRuleBits.Reconstruct*'
sanitized+=':Cuda/DeltaRuleStorage.TheRing*'
sanitized+=':Cuda/Mamba2Storage.TheRing*:Cuda/CausalConv.ManyRows*:Cuda/GatedNorm.ARow*'
failed=()

step() {  # NAME COMMAND...: runs it, logs it, says in one line how it went
  local name=$1 start=$SECONDS
  shift
  if "$@" >"$out/$name.log" 2>&1; then
    echo "$name: ok, $((SECONDS - start)) s: $(grep -E 'PASSED|ERROR SUMMARY|RACECHECK SUMMARY' "$out/$name.log" | tail -8 | paste -sd' ')"
  else
    failed+=("$name")
    echo "$name: FAILED, $((SECONDS - start)) s; the end of $out/$name.log:"
    grep -E 'Failure|FAILED|ERROR|Error|error' "$out/$name.log" | head -20
    tail -20 "$out/$name.log"
  fi
}

# racecheck is slow and mostly waits for one core: the cases are dealt out to several processes.
racecheck() {
  local shards=4 shard code=0 pids=()
  for ((shard = 0; shard < shards; ++shard)); do
    GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard "$sanitizer" --tool racecheck --error-exitcode 1 "$tests" \
      "--gtest_filter=$sanitized" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || code=1; done
  return "$code"
}

check_kernels() {
  step kernel-tests "$tests" '--gtest_filter=Cuda/*'
  if grep -q SKIPPED "$out/kernel-tests.log"; then
    failed+=("kernel-tests-skipped")
    echo "some GPU tests were skipped; see $out/kernel-tests.log"
  fi
  if sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null); then
    step memcheck "$sanitizer" --tool memcheck --error-exitcode 1 "$tests" "--gtest_filter=$sanitized"
    step racecheck racecheck
  else
    failed+=("compute-sanitizer")
    echo "compute-sanitizer was not found: memory accesses and races were not checked"
  fi
}

time_kernels() {
  step bench "$bench" --device cuda --json "$out/kernel-bench.json"
  cat "$out/bench.log"
  for family in gated_delta kda; do
    step "bench-$family" "$bench" --device cuda --family "$family" --json "$out/kernel-bench-$family.json"
    cat "$out/bench-$family.log"
  done
}

if ! nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null; then
  echo "no GPU on this machine: nothing was checked" >&2
  exit 1
fi
if [[ $part != bench ]]; then check_kernels; fi
if [[ $part != tests ]]; then time_kernels; fi
if ((${#failed[@]} > 0)); then
  echo "kernel checks FAILED: ${failed[*]}"
  exit 1
fi
echo "kernel checks passed"
