#!/usr/bin/env bash
# The kernels' checks that need a GPU: every Cuda test, compute-sanitizer's memcheck and racecheck over a part of them, and
# the first table of kernel times. Usage: scripts/gpu_check_kernels.sh BUILD_DIR
# Logs and bench.json go to ${OUT:-build/gpu-check}. Exit code 0 only when everything ran and passed.
set -uo pipefail
build=${1:?usage: scripts/gpu_check_kernels.sh BUILD_DIR}
out=${OUT:-build/gpu-check}
mkdir -p "$out"
tests=$build/bin/kernels_test
bench=$build/bin/replayeval_kernel_bench
# A part with every kernel in it, both modes, mixed ring positions and padded rows, and few enough launches.
sanitized='Cuda/Mamba2Bits.BufferOfOne*:Cuda/Mamba2Bits.RowsAtMixed*:Cuda/Mamba2Bits.Reconstruct*'
sanitized+=':Cuda/Mamba2Bits.LargeBatches*'
sanitized+=':Cuda/DeltaRuleBits.BufferOfOne*:Cuda/DeltaRuleBits.RowsAtMixed*:Cuda/DeltaRuleBits.Reconstruct*'
sanitized+=':Cuda/DeltaRuleStorage.TheRing*'
sanitized+=':Cuda/Mamba2Storage.TheRing*:Cuda/CausalConv.Blocks*:Cuda/GatedNorm.ARow*'
failed=()

step() {  # NAME COMMAND...: runs it, logs it, says in one line how it went
  local name=$1 start=$SECONDS
  shift
  if "$@" >"$out/$name.log" 2>&1; then
    echo "$name: ok, $((SECONDS - start)) s: $(grep -E 'PASSED|ERROR SUMMARY|RACECHECK SUMMARY' "$out/$name.log" | tail -2 | paste -sd' ')"
  else
    failed+=("$name")
    echo "$name: FAILED, $((SECONDS - start)) s; the end of $out/$name.log:"
    grep -E 'Failure|FAILED|ERROR|Error|error' "$out/$name.log" | head -20
    tail -20 "$out/$name.log"
  fi
}

if ! nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null; then
  echo "no GPU on this machine: nothing was checked" >&2
  exit 1
fi
step kernel-tests "$tests" '--gtest_filter=Cuda/*'
if grep -q SKIPPED "$out/kernel-tests.log"; then
  failed+=("kernel-tests-skipped")
  echo "some GPU tests were skipped; see $out/kernel-tests.log"
fi
if sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null); then
  step memcheck "$sanitizer" --tool memcheck --error-exitcode 1 "$tests" "--gtest_filter=$sanitized"
  step racecheck "$sanitizer" --tool racecheck --error-exitcode 1 "$tests" "--gtest_filter=$sanitized"
else
  failed+=("compute-sanitizer")
  echo "compute-sanitizer was not found: memory accesses and races were not checked"
fi
step bench "$bench" --device cuda --json "$out/kernel-bench.json"
cat "$out/bench.log"
for family in gated_delta kda; do
  step "bench-$family" "$bench" --device cuda --family "$family" --json "$out/kernel-bench-$family.json"
  cat "$out/bench-$family.log"
done
if ((${#failed[@]} > 0)); then
  echo "kernel checks FAILED: ${failed[*]}"
  exit 1
fi
echo "kernel checks passed"
