#!/usr/bin/env bash
# shellcheck disable=SC2317  # functions are called through shown_stage
# Mutated inputs to the readers of files (tests/fuzz), with libFuzzer under the address and undefined-behaviour sanitizers.
#   scripts/fuzz.sh [RUNS]      inputs over all targets, 1,000,000 by default
# A crash, a hang (10 s), an allocation out of proportion to the input or a leak ends it with exit code 1; the input is
# left in build/fuzz/found. What was learnt stays in build/fuzz/corpus and is where the next call goes on from.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/setup.sh
. scripts/setup.sh
runs=${1:-1000000}
[[ $runs =~ ^[1-9][0-9]*$ ]] || { say "usage: scripts/fuzz.sh [RUNS]"; exit 2; }
targets=(safetensors_header shard_index model_config tokenizer_json task_rows bench_file)
share=$(((runs + ${#targets[@]} - 1) / ${#targets[@]}))
total=0

build_fuzzers() { scripts/build.sh fuzz >&2; }

fuzz() {  # TARGET
  local target=$1 folder=build/fuzz/corpus/$1 log=build/fuzz/$1.log code=0 executed
  mkdir -p "$folder" build/fuzz/found
  "build/fuzz/bin/fuzz_$target" -runs="$share" -seed="${REPLAYEVAL_FUZZ_SEED:-1}" -max_len=16384 -timeout=10 \
    -rss_limit_mb=1024 -malloc_limit_mb=8 -dict=tests/fuzz/json.dict -print_final_stats=1 -close_fd_mask=1 \
    -artifact_prefix="build/fuzz/found/$target-" "$folder" "tests/fuzz/seeds/$target" >"$log" 2>&1 || code=$?
  if ((code != 0)); then
    tail -n 40 "$log" >&2
    return 1
  fi
  executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  total=$((total + executed))
  say "  $target: $executed inputs, $(sed -n 's/.*cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1) edges, at most $(
    sed -n 's/^stat::peak_rss_mb: *//p' "$log") MB"
}

set_up --fuzz --preset fuzz
shown_stage build build_fuzzers
for target in "${targets[@]}"; do shown_stage "$target" fuzz "$target"; done
print_stage_times
say ""
say "$total inputs, nothing found"
