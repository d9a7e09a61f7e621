#!/usr/bin/env bash
# clang-format on every tracked C++ and CUDA file, in place. Installs clang-format, or says how to, like `make lint`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/setup.sh
. scripts/setup.sh
if ! command -v clang-format >/dev/null; then require_packages scripts/packages-lint.txt; fi
git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' | xargs clang-format -i
