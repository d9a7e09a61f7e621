# shellcheck shell=bash
# Stages of the front door: each prints one line with its duration, keeps its noise in a log, and is skipped while the
# stamp of its inputs stands. Source this from the repository's root.

LOGS=.cache/logs
STAGE_NAMES=()
STAGE_SECONDS=()

say() { printf '%s\n' "$*" >&2; }

# One line, and the exit code of bad input.
fail() {
  say "error: $*"
  exit 3
}

now() { date +%s.%N; }

seconds_since() { awk -v from="$1" -v to="$(now)" 'BEGIN { printf "%.1f", to - from }'; }

record_stage() {  # NAME SECONDS
  STAGE_NAMES+=("$1")
  STAGE_SECONDS+=("$2")
}

stage_log() { printf '%s/%s.log' "$LOGS" "${1// /-}"; }  # NAME

# quiet_stage NAME FUNCTION...: output goes to the stage's log; a failure shows the log's end. The function must hand on
# its failures itself (`|| return`): bash does not honour -e inside whatever stands before `||`.
quiet_stage() {
  local name=$1 log start code=0
  shift
  mkdir -p "$LOGS"
  log=$(stage_log "$name")
  start=$(now)
  printf '[setup] %-13s … ' "$name" >&2
  "$@" >"$log" 2>&1 </dev/null || code=$?
  if ((code != 0)); then
    say "failed after $(seconds_since "$start") s; the end of $log:"
    tail -n 15 "$log" | sed 's/^/    /' >&2
    return "$code"
  fi
  record_stage "$name" "$(seconds_since "$start")"
  say "${STAGE_SECONDS[-1]} s"
}

# shown_stage NAME FUNCTION: output is the user's to see.
shown_stage() {
  local name=$1 start code=0
  shift
  start=$(now)
  "$@" || code=$?
  record_stage "$name" "$(seconds_since "$start")"
  if ((code != 0)); then
    say "[$name] failed after ${STAGE_SECONDS[-1]} s (exit code $code)"
    return "$code"
  fi
  say "[$name] ${STAGE_SECONDS[-1]} s"
}

print_stage_times() {
  local i
  say ""
  say "Time of each stage:"
  for i in "${!STAGE_NAMES[@]}"; do
    printf '  %-13s %8s s\n' "${STAGE_NAMES[i]}" "${STAGE_SECONDS[i]}" >&2
  done
  printf '  %-13s %8s s\n' total "$(printf '%s\n' "${STAGE_SECONDS[@]}" | awk '{ t += $1 } END { printf "%.1f", t }')" >&2
}

# content_key FILE...: a hash of the files' contents and of the words in $KEY_WORDS.
content_key() {
  { printf '%s\n' "${KEY_WORDS:-}"; sha256sum -- "$@"; } | sha256sum | cut -d' ' -f1
}

stamp_is() { [[ -f $1 && $(<"$1") == "$2" ]]; }  # FILE KEY

write_stamp() {  # FILE KEY; whole or not at all
  mkdir -p "$(dirname "$1")"
  printf '%s\n' "$2" >"$1.new"
  mv "$1.new" "$1"
}
