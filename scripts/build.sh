#!/usr/bin/env bash
# Configures a preset where that is needed, and builds it.
#   scripts/build.sh PRESET [TARGET...]
# REPLAYEVAL_JOBS: parallel compiles (default: Ninja's choice).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${1:?usage: scripts/build.sh PRESET [TARGET...]}
shift
cmake=.venv/bin/cmake
[[ -x $cmake ]] || { echo "error: no $cmake: run \`make setup\` first" >&2; exit 3; }

# Ninja re-runs CMake when a list file changed; a missing build.ninja means that the last configure failed or never was.
if [[ ! -f build/$preset/build.ninja ]]; then
  "$cmake" --preset "$preset"
fi
arguments=(--build --preset "$preset")
if [[ -n ${REPLAYEVAL_JOBS:-} ]]; then arguments+=(--parallel "$REPLAYEVAL_JOBS"); fi
if (($#)); then arguments+=(--target "$@"); fi
"$cmake" "${arguments[@]}"
