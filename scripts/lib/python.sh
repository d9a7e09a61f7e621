# shellcheck shell=bash
# The project's own virtual environment in .venv: LibTorch, CMake, and for tests transformers.

VENV=.venv

system_python() {
  if [[ -x /usr/bin/python3 ]]; then echo /usr/bin/python3; else command -v python3; fi
}

# The nvcc that the build would take, if it is new enough for the CUDA that LibTorch was built with.
find_nvcc() {
  local candidate release
  for candidate in "$(command -v nvcc 2>/dev/null)" "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" /usr/local/cuda/bin/nvcc; do
    [[ -n $candidate && -x $candidate ]] || continue
    release=$("$candidate" --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
    if ((${release:-0} >= 13)); then
      printf '%s\n' "$candidate"
      return 0
    fi
  done
  return 1
}

builds_cuda() {  # PRESET
  case $1 in
    cpu | asan | fuzz) return 1 ;;
    cuda) return 0 ;;
    *) find_nvcc >/dev/null ;;
  esac
}

python_key() {  # REQUIREMENTS_FILE
  KEY_WORDS="$("$(system_python)" --version)" content_key "$1"
}

python_stamp() { printf '%s/.stamps/%s' "$VENV" "$(basename "$1")"; }

install_requirements() {  # REQUIREMENTS_FILE...
  local file
  if ! "$VENV/bin/python" -c '' 2>/dev/null; then
    rm -rf "$VENV"
    "$(system_python)" -m venv "$VENV" || return
  fi
  for file in "$@"; do
    "$VENV/bin/python" -m pip install --disable-pip-version-check --no-input --no-deps --progress-bar off -r "$file" ||
      return
    write_stamp "$(python_stamp "$file")" "$(python_key "$file")"
  done
}

require_python() {  # REQUIREMENTS_FILE...
  local file missing=() reason
  for file in "$@"; do
    if ! "$VENV/bin/python" -c '' 2>/dev/null || ! stamp_is "$(python_stamp "$file")" "$(python_key "$file")"; then
      missing+=("$file")
    fi
  done
  if ((${#missing[@]} == 0)); then
    record_stage python 0.0
    return
  fi
  if ! quiet_stage python install_requirements "${missing[@]}"; then
    reason=$(grep -E '^ERROR|Error' "$LOGS/python.log" | tail -n 1)
    fail "pip could not fill $VENV from ${missing[*]}: ${reason:-see the log} (log: $LOGS/python.log)"
  fi
}
