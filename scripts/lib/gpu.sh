# shellcheck shell=bash
# What a check on a GPU machine needs to know: is there a GPU, and where are the libraries of a build made elsewhere.

CUDA_FILTER='*Cuda*:*cuda*'

gpu_name() { nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1; }

require_gpu() {
  if ! nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then
    fail "no NVIDIA GPU here (nvidia-smi lists none): gpu-check needs one"
  fi
}

# The torch wheel's folders of shared libraries, colon-separated, without importing torch.
torch_library_path() {
  local python=python3
  if [[ -x .venv/bin/python ]]; then python=.venv/bin/python; fi
  "$python" - <<'PYTHON'
import glob, importlib.util, os
spec = importlib.util.find_spec("torch")
if spec:
    torch = spec.submodule_search_locations[0]
    print(":".join([os.path.join(torch, "lib"), *sorted(glob.glob(os.path.join(torch, "..", "nvidia", "*", "lib")))]))
PYTHON
}

# Adds what the programs of BUILD_DIR do not find by themselves; says which library is missing if that is not enough.
use_libraries_of() {  # BUILD_DIR
  local program=$1/bin/replayeval missing
  if ldd "$program" | grep -q 'not found'; then
    LD_LIBRARY_PATH=$(torch_library_path)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    if [[ -d $1/lib ]]; then LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$PWD/$1/lib; fi
    export LD_LIBRARY_PATH
  fi
  missing=$(ldd "$program" | awk '/not found/ { print $1 }' | sort -u | tr '\n' ' ')
  [[ -z $missing ]] || fail "$program lacks shared libraries: $missing"
}

cuda_cases() {  # PROGRAM: does it have any? (grep reads to the end: with -q a long list would die of a broken pipe)
  "$1" --gtest_filter="$CUDA_FILTER" --gtest_list_tests 2>/dev/null | grep '^  ' >/dev/null
}
