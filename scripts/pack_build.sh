#!/usr/bin/env bash
# Packs what scripts/gpu_check.sh runs for a machine of another distribution that has the same torch wheel: OUT/bin with
# the stripped programs (of the tests, those with a case named Cuda), OUT/lib with the shared libraries that are neither the wheel's nor every distribution's (the runtimes, libz, libcrypto).
#   scripts/pack_build.sh BUILD_DIR OUT
# There: REPLAYEVAL_BUILD_DIR=OUT scripts/gpu_check.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/lib/gpu.sh
. scripts/lib/gpu.sh
build_dir=${1:?usage: scripts/pack_build.sh BUILD_DIR OUT}
out=${2:?usage: scripts/pack_build.sh BUILD_DIR OUT}
[[ -x $build_dir/bin/replayeval ]] || { echo "error: no program $build_dir/bin/replayeval" >&2; exit 3; }

rm -rf "$out"
mkdir -p "$out/bin" "$out/lib"
for program in "$build_dir"/bin/*; do
  if [[ $program == *_test ]] && ! cuda_cases "$program"; then continue; fi
  if [[ -f $program && -x $program ]]; then strip -o "$out/bin/$(basename "$program")" "$program"; fi
done
for program in "$build_dir"/bin/*; do ldd "$program"; done | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
  grep -vE '/(site-packages|cuda[^/]*)/|/(libc|libm|libdl|librt|libpthread|libutil|libgcc_s|libstdc\+\+|libgomp|libz|libcrypto|ld-linux[^/]*)\.so' |
  while read -r library; do cp -L "$library" "$out/lib/"; done
du -sh "$out/bin" "$out/lib"
