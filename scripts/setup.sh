#!/usr/bin/env bash
# Everything between a fresh clone and a build, each stage skipped when nothing changed:
#   packages  the distribution's packages (needs root and apt; without them, the missing ones are named)
#   python    the torch and cmake wheels in .venv; for tests also transformers
#   text      the held-out text, out of packages whose text never changes
#
#   scripts/setup.sh [--tests] [--lint] [--fuzz] [--preset release|cpu|cuda|asan|fuzz]
#
# Exit codes: 0 ready, 2 usage, 3 something is missing and could not be installed (one line says what).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/lib/stages.sh
. scripts/lib/stages.sh
# shellcheck source=scripts/lib/packages.sh
. scripts/lib/packages.sh
# shellcheck source=scripts/lib/python.sh
. scripts/lib/python.sh
# shellcheck source=scripts/lib/text.sh
. scripts/lib/text.sh

set_up() {  # [--tests] [--lint] [--fuzz] [--preset NAME]
  local lists=(scripts/packages.txt) requirements=(scripts/requirements.txt) preset=release tests=no
  while (($#)); do
    case $1 in
      --tests) tests=yes ;;
      --lint) lists+=(scripts/packages-lint.txt) ;;
      --fuzz) lists+=(scripts/packages-fuzz.txt) ;;
      --preset) preset=${2:?--preset needs a name}; shift ;;
      *) say "usage: scripts/setup.sh [--tests] [--lint] [--fuzz] [--preset release|cpu|cuda|asan|fuzz]"; exit 2 ;;
    esac
    shift
  done
  if [[ $preset == cuda ]] && ! find_nvcc >/dev/null; then
    fail "preset cuda needs an nvcc of CUDA 13 or newer on PATH, in \$CUDA_HOME/bin or /usr/local/cuda/bin"
  fi
  if builds_cuda "$preset"; then requirements+=(scripts/requirements-cuda.txt); fi
  if [[ $tests == yes ]]; then
    requirements+=(scripts/requirements-test.txt)
    if is_debian; then lists+=(scripts/packages-test.txt); fi
  fi

  # The list of text packages needs a Python, which a bare machine gets from the first list.
  if system_python >/dev/null; then
    # shellcheck disable=SC2046  # one package a word
    require_packages "${lists[@]}" -- $(text_packages)
  else
    # shellcheck disable=SC2119
    require_packages "${lists[@]}"
    # shellcheck disable=SC2046
    require_packages --stage "text packages" "${lists[@]}" -- $(text_packages)
  fi
  require_python "${requirements[@]}"
  require_text
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  set_up "$@"
fi
