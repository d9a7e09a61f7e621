#!/usr/bin/env python3
"""Includes point down only: cli -> comparator -> {model -> executors, metrics} -> {kernels, datasets, reports}.

    check_arrows.py [ROOT]

Reads the #include lines of every C++ and CUDA file below the project's folders. A folder that is not in FLOORS is an
error too, so that a new one gets a place. Prints one line for each include that points up or sideways; exit code 1 then.
"""

import pathlib
import re
import sys

# What the files of a folder may include of the project. The longest matching folder counts, and every folder may include
# itself.
FLOORS = {
    "kernels": set(),
    "reference": set(),
    "datasets": set(),
    "reports": set(),
    "eval": {"reports"},  # the few files that all of eval/ shares
    "eval/checkpoint": {"datasets", "kernels"},
    "eval/executors": {"kernels", "reference", "eval/checkpoint"},
    "eval/model": {"kernels", "datasets", "eval/checkpoint", "eval/executors"},
    "eval/metrics": {"kernels"},
    "eval/comparator": {"kernels", "datasets", "reports", "eval", "eval/checkpoint", "eval/executors",
                        "eval/model", "eval/metrics"},
    "eval/cli": {"kernels", "datasets", "reports", "eval", "eval/checkpoint", "eval/executors", "eval/model",
                 "eval/metrics", "eval/comparator"},
}
NO_LIBTORCH = {"kernels", "reference", "datasets", "reports"}
SUFFIXES = {".h", ".cpp", ".cu", ".cuh", ".in"}
OWN_FOLDERS = ("kernels", "reference", "datasets", "reports", "eval", "tests")

QUOTED = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
LIBTORCH = re.compile(r"^\s*#\s*include\s*<((?:ATen|torch|c10|caffe2)/[^>]+)>")


def floor_of(path):
    """The longest folder of FLOORS that holds the path, or None."""
    parts = pathlib.PurePosixPath(path).parts[:-1]
    for length in range(len(parts), 0, -1):
        folder = "/".join(parts[:length])
        if folder in FLOORS:
            # A folder of eval/ that nobody gave a place is not one of the shared files.
            return None if folder == "eval" and len(parts) > 1 else folder
    return None


def complaints_of(name, text):
    floor = floor_of(name)
    if floor is None:
        yield f"{name}: its folder has no place in scripts/check_arrows.py"
        return
    for number, line in enumerate(text.splitlines(), start=1):
        quoted = QUOTED.match(line)
        if quoted and quoted.group(1).startswith(tuple(folder + "/" for folder in OWN_FOLDERS)):
            target = floor_of(quoted.group(1))
            if target != floor and target not in FLOORS[floor]:
                yield f"{name}:{number}: {floor}/ may not include {quoted.group(1)}"
        libtorch = LIBTORCH.match(line)
        if libtorch and floor in NO_LIBTORCH:
            yield f"{name}:{number}: {floor}/ knows no LibTorch, but includes <{libtorch.group(1)}>"


def check(root):
    """(complaints, number of files read)"""
    complaints, files = [], 0
    for top in sorted({floor.split("/")[0] for floor in FLOORS}):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                files += 1
                name = path.relative_to(root).as_posix()
                complaints += complaints_of(name, path.read_text(encoding="utf-8", errors="replace"))
    return complaints, files


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[1])
    complaints, files = check(root)
    for complaint in complaints:
        print(complaint)
    if files == 0:
        print(f"{root}: no source files found")
        return 1
    if not complaints:
        print(f"arrows point down in {files} files")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
