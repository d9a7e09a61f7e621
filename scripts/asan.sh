#!/usr/bin/env bash
# shellcheck disable=SC2317  # functions are called through shown_stage
# The tests of the parts that read files and write memory by hand, with the address and undefined-behaviour sanitizers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/setup.sh
. scripts/setup.sh
build_tests() { scripts/build.sh asan replayeval_plain_tests >&2; }
run_tests() {
  .venv/bin/ctest --preset asan --parallel "${REPLAYEVAL_TEST_JOBS:-2}" --label-regex '^plain$' --no-tests=error
}

set_up --preset asan
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
export ASAN_OPTIONS=${ASAN_OPTIONS:-strict_string_checks=1:detect_stack_use_after_return=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
shown_stage build build_tests
shown_stage tests run_tests
print_stage_times
