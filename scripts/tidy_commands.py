#!/usr/bin/env python3
"""Rewrite CMake's compile commands for clang-tidy: without the compiler launcher, g++'s precompiled header and its
flags for that, and its warning flags: clang does not know them all, and warnings are the build's matter.

    tidy_commands.py IN.json OUT.json
"""

import json
import os
import shlex
import sys


def only_for_gcc(word):
    return word == "-fpch-preprocess" or (word.startswith("-W") and not word.startswith(("-Wl,", "-Wp,", "-Wa,")))


def rewritten(words):
    compiler = next(i for i, word in enumerate(words) if os.path.basename(word) in ("c++", "g++", "clang++"))
    kept, i = [], compiler
    while i < len(words):
        if words[i] == "-include" and "cmake_pch" in words[i + 1]:
            i += 2
            continue
        if not only_for_gcc(words[i]):
            kept.append(words[i])
        i += 1
    return kept


def main():
    with open(sys.argv[1], encoding="utf-8") as stream:
        commands = json.load(stream)
    result = []
    for entry in commands:
        words = shlex.split(entry["command"])
        if entry["file"].endswith(".cpp") and "cmake_pch" not in entry["file"]:
            result.append({"directory": entry["directory"], "file": entry["file"],
                           "command": shlex.join(rewritten(words))})
    os.makedirs(os.path.dirname(sys.argv[2]), exist_ok=True)
    with open(sys.argv[2], "w", encoding="utf-8") as stream:
        json.dump(result, stream, indent=1)


if __name__ == "__main__":
    main()
