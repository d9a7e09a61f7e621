#!/usr/bin/env bash
# shellcheck disable=SC2317  # functions are called through shown_stage
# Set-up, build and every test: the C++ ones through ctest, the Python ones through unittest.
#   scripts/test.sh [PRESET]
# REPLAYEVAL_FULL_SWEEP=1 runs the full sweeps instead of samples of them. Ends with "N passed, M failed, K skipped" and
# fails if anything failed or nothing ran.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/setup.sh
. scripts/setup.sh
preset=${1:-${REPLAYEVAL_PRESET:-release}}
jobs=${REPLAYEVAL_TEST_JOBS:-2}
results=.cache/test-results
# One test computes on one core; two of them run at a time.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

build_all() { scripts/build.sh "$preset" >&2; }

cpp_tests() {
  .venv/bin/ctest --preset "$preset" --parallel "$jobs" --no-tests=error --output-junit "$PWD/$results/ctest.xml"
}

python_tests() {
  local program=$PWD/build/$preset/bin/replayeval
  REPLAYEVAL=$program REPLAYEVAL_PROGRAM=$program .venv/bin/python scripts/run_python_tests.py "$results/python.json"
}

set_up --tests --preset "$preset"
shown_stage build build_all
rm -rf "$results"
mkdir -p "$results"
failed=0
shown_stage c++-tests cpp_tests || failed=1
shown_stage py-tests python_tests || failed=1
print_stage_times
say ""
# Prints the closing line; fails where a runner left no result, ran nothing or counted a failure.
.venv/bin/python scripts/sum_up_tests.py "$results/ctest.xml" "$results/python.json" || failed=1
exit "$failed"
