"""Finds and calls the built `replayeval`."""

import os
import pathlib
import subprocess

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
    return subprocess.run([program(), *map(str, arguments)], capture_output=True, text=True, timeout=timeout, check=False,
                          **options)
