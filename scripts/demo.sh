#!/usr/bin/env bash
# From a fresh clone to the reports of the main job: set-up, build, `replayeval run` of both bundled checkpoints.
# REPLAYEVAL_PRESET: the preset to build (default release: with CUDA kernels where an nvcc is found).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/setup.sh
. scripts/setup.sh
preset=${REPLAYEVAL_PRESET:-release}

# Threads that wait for others give up their core after some 10 µs instead of some ms. Without it the evaluation takes many
# times longer where other programs want the cores, too (reports/measurements.md).
if [[ -z ${OMP_WAIT_POLICY:-} ]]; then export GOMP_SPINCOUNT=${GOMP_SPINCOUNT:-1000}; fi

build_program() { scripts/build.sh "$preset" replayeval >&2; }
evaluate() {
  local config
  for config in demo demo-delta-rule; do "build/$preset/bin/replayeval" run "configs/$config.yaml" || return; done
}

set_up --preset "$preset"
shown_stage build build_program
shown_stage evaluation evaluate
print_stage_times
say ""
say "The reports: results/demo/report.html and results/demo-delta-rule/report.html"
