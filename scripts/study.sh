#!/usr/bin/env bash
# The published study (reports/h200): every config of configs/h200 a workload at a time, then kernel and model speed.
#
#   scripts/study.sh [BUILD_DIR]            all parts that are not done yet, one after the other, on a machine with a GPU
#   scripts/study.sh BUILD_DIR PART...      these parts alone, such as h200-tiny-nemotron-h/recall or speed/kernels
#   scripts/study.sh --list                 the parts
#   scripts/study.sh --publish [BUILD_DIR]  reports of what there is, for reports/h200; needs no GPU
#
# A stopped part goes on where it was when it is asked for again. BUILD_DIR is as for scripts/gpu_check.sh (default
# build/cuda, or REPLAYEVAL_BUILD_DIR). Results go to results/NAME and results/h200-speed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/lib/stages.sh
. scripts/lib/stages.sh
# shellcheck source=scripts/lib/gpu.sh
. scripts/lib/gpu.sh

CONFIGS=(tiny-nemotron-h tiny-qwen3-next tiny-nemotron-h-float32 tiny-qwen3-next-float32
  tiny-nemotron-h-buffer-lengths tiny-qwen3-next-buffer-lengths tiny-nemotron-h-texts tiny-qwen3-next-texts
  tiny-nemotron-h-states tiny-qwen3-next-states)
SPEED=results/h200-speed

workloads_of() {  # CONFIG: the names, one a line
  awk '/^workloads:/ { inside = 1 } inside && /^  - name: / { print $3 }' "configs/h200/$1.yaml"
}

list_parts() {
  local config workload
  for config in "${CONFIGS[@]}"; do
    while read -r workload; do printf 'h200-%s/%s\n' "$config" "$workload"; done < <(workloads_of "$config")
  done
  printf 'speed/%s\n' kernels buffer-lengths model model-context scoring
}

kernels() {  # FILE OPTIONS...
  local file=$1
  shift
  "$program" bench kernels --device cuda "$@" --json "$SPEED/$file.json.new" && mv "$SPEED/$file.json"{.new,}
}

model() {  # FILE SHAPE OPTIONS...
  local file=$1 shape=$2
  shift 2
  "$program" bench model "configs/shapes/$shape.yaml" --device cuda "$@" --json >"$SPEED/$file.json.new" &&
    mv "$SPEED/$file.json"{.new,}
}

speed() {  # PART
  local batches=(--batch 1 8 32 128 256 512) arms=exact-f32,replay-f32-ring-bf16 length
  mkdir -p "$SPEED"
  case $1 in
    kernels)
      kernels kernels-mamba2 --family mamba2 "${batches[@]}" --state float32 bfloat16 float16 || return
      kernels kernels-gated_delta --family gated_delta "${batches[@]}" --state float32 bfloat16 float16 || return
      kernels kernels-gated_delta-inputs --family gated_delta --ring-form inputs "${batches[@]}" --state float32 bfloat16 || return
      kernels kernels-kda --family kda "${batches[@]}" --state float32 bfloat16
      ;;
    buffer-lengths)
      for length in 4 8 32; do
        kernels "kernels-mamba2-L$length" --family mamba2 --batch 8 256 --state float32 float16 --buffer-len "$length" || return
        kernels "kernels-gated_delta-L$length" --family gated_delta --batch 8 256 --state float32 bfloat16 \
          --buffer-len "$length" || return
      done
      ;;
    model)
      model model nemotron-h-8b --arms "$arms,exact-f16,replay-f16" --rounds 3 "${batches[@]}" || return
      model model-qwen3.5-9b qwen3.5-9b --arms "$arms,exact-bf16,replay-bf16" --rounds 3 "${batches[@]}"
      ;;
    model-context)
      model model-context nemotron-h-8b --arms "$arms" --rounds 3 --context 2048 --batch 32 128 || return
      model model-qwen3.5-9b-context qwen3.5-9b --arms "$arms" --rounds 3 --context 2048 --batch 32 128
      ;;
    scoring) model scoring nemotron-h-8b --arms "$arms" --teacher-forced --sequences 16 --tokens 2048 ;;
    *) fail "no part speed/$1: scripts/study.sh --list names them" ;;
  esac
}

run_one() {  # PART
  case $1 in
    speed/*) speed "${1#speed/}" ;;
    h200-*/*) "$program" run "configs/h200/$(basename "$(dirname "${1#h200-}")").yaml" --only "$(basename "$1")" ;;
    *) fail "no part $1: scripts/study.sh --list names them" ;;
  esac
}

# Results, Markdown and figures of each run, one page of all of them, speeds, and the tables of the two READMEs.
publish() {
  local config file out=reports/h200 found=() bench=()
  for config in "${CONFIGS[@]}"; do
    [[ -f results/h200-$config/results.json ]] || continue
    found+=("results/h200-$config")
    mkdir -p "$out/$config/figures" "$out/speed"
    cp "results/h200-$config/results.json" "$out/$config/"
    "$program" report "results/h200-$config" --format markdown --output "$out/$config" || return
    rm -f "$out/$config/figures/"*.{gp,dat,pdf}
  done
  ((${#found[@]})) || fail "results: expected results/h200-*/results.json, which scripts/study.sh makes"
  for file in "$SPEED"/*.json; do
    [[ -f $file ]] || continue
    cp "$file" "$out/speed/"
    bench+=(--bench "$file")
  done
  "$program" report "${found[@]}" --html "${bench[@]}" --output "$out" || return
  python3 "$out/tables.py" --write
}

if [[ ${1:-} == --list ]]; then list_parts; exit 0; fi
action=parts
if [[ ${1:-} == --publish ]]; then action=publish; shift; fi
build_dir=${1:-${REPLAYEVAL_BUILD_DIR:-build/cuda}}
shift || true
program=$build_dir/bin/replayeval
[[ -x $program ]] || fail "no program $program: build the preset cuda first"
use_libraries_of "$build_dir"
if [[ $action == publish ]]; then publish; exit; fi

require_gpu
[[ -f .data/tasks/last_word.jsonl ]] || python3 datasets/heldout_tasks.py >&2
parts=("$@")
if ((${#parts[@]} == 0)); then mapfile -t parts < <(list_parts); fi
failed=()
for part in "${parts[@]}"; do
  say "== $part"
  one() { run_one "$part"; }
  shown_stage "$part" one || failed+=("$part")
done
print_stage_times
if ((${#failed[@]})); then fail "these parts failed: ${failed[*]}"; fi
