"""Finds and calls the built `replayeval`."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]


def program():
    """REPLAYEVAL_PROGRAM, or the newest build below build/."""
    chosen = os.environ.get("REPLAYEVAL_PROGRAM")
    if chosen:
        return chosen
    builds = sorted(ROOT.glob("build/*/bin/replayeval"), key=lambda path: path.stat().st_mtime)
    if not builds:
        raise FileNotFoundError("no build/*/bin/replayeval: build first, or set REPLAYEVAL_PROGRAM")
    return str(builds[-1])


def call(*arguments, timeout=300, **options):
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run([program(), *map(str, arguments)], text=True, timeout=timeout, check=False, **options)


# The kernel counts what a process was before it became the program, so that a large parent hides the program's peak.
MEASURE = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
sys.exit(code)
"""


def peak_memory(*arguments, timeout=300):
    """The largest resident set, in bytes, of the program, on one thread; it must succeed."""
    done = subprocess.run([sys.executable, "-S", "-c", MEASURE, program(), *map(str, arguments)], capture_output=True,
                          text=True, timeout=timeout, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    return int(done.stdout)
