# shellcheck shell=bash
# The held-out text: from installed packages to plain files below .data/text.

TEXT_STAMP=.cache/stamps/text

text_packages() { "$(system_python)" datasets/prepare_text.py --list-packages heldout; }

text_key() {
  local versions=""
  if command -v dpkg-query >/dev/null 2>&1; then
    # shellcheck disable=SC2046  # one package a word
    versions=$(dpkg-query -W $(text_packages) 2>/dev/null || true)
  fi
  KEY_WORDS=$versions content_key datasets/prepare_text.py datasets/packages.json
}

prepare_text() {
  "$(system_python)" datasets/prepare_text.py || return
  write_stamp "$TEXT_STAMP" "$(text_key)"
}

require_text() {
  if [[ -d .data/text/heldout ]] && stamp_is "$TEXT_STAMP" "$(text_key)"; then
    record_stage text 0.0
    return
  fi
  quiet_stage text prepare_text || fail "the held-out text could not be prepared: $(tail -n 1 "$LOGS/text.log")"
}
