#!/usr/bin/env bash
# shellcheck disable=SC2317  # functions are called through shown_stage
# Style and mistakes: clang-format on every tracked C++ and CUDA file, include arrows, shellcheck on every script, and
# clang-tidy on our .cpp files by the compile commands of a CPU build.
#   scripts/lint.sh [FILE.cpp...]      only these files for clang-tidy
# REPLAYEVAL_BASE=REVISION: clang-tidy only on .cpp files changed since then.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/setup.sh
. scripts/setup.sh
set_up --lint --preset cpu
failed=0

format_check() { git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' | xargs clang-format --dry-run -Werror; }

shell_check() { git ls-files '*.sh' .ci/run | xargs shellcheck -x; }

tidy_files() {  # of the given ones, those that have a compile command
  if (($#)); then printf '%s\n' "$@"
  elif [[ -n ${REPLAYEVAL_BASE:-} ]]; then git diff --name-only --diff-filter=d "$REPLAYEVAL_BASE" -- '*.cpp'
  else git ls-files '*.cpp'; fi
}

# The compile commands less what only g++ understands: its precompiled header and the words that go with it.
tidy_check() {
  local files
  .venv/bin/cmake --preset cpu >/dev/null || return
  scripts/build.sh cpu replayeval_build_info_header >/dev/null || return
  "$(system_python)" scripts/tidy_commands.py build/cpu/compile_commands.json build/tidy/compile_commands.json || return
  mapfile -t files < <(tidy_files "$@")
  if ((${#files[@]} == 0)); then return 0; fi
  # Counts of what clang-tidy keeps to itself, of headers that are not ours, are no news.
  printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 1 clang-tidy -p build/tidy --quiet \
    2> >(grep -v ' warnings\? generated\.$' >&2)
}

shown_stage format format_check || failed=1
shown_stage arrows "$(system_python)" scripts/check_arrows.py || failed=1
shown_stage shellcheck shell_check || failed=1
shown_stage clang-tidy tidy_check "$@" || failed=1
print_stage_times
if ((failed)); then say "lint: failed"; else say "lint: clean"; fi
exit "$failed"
