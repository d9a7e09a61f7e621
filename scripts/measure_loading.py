#!/usr/bin/env python3
"""Measure how fast a checkpoint's weights are loaded from a disk whose cache has forgotten them, beside `cat` of the same
files into nothing.

    measure_loading.py CHECKPOINT [--device cpu|cuda] [--rounds 3] [--program build/release/bin/replayeval]

The files are taken out of the page cache before each reading (posix_fadvise, which needs no rights and works on disks;
files in memory, as on tmpfs, stay). The time is that of load_model alone, as `replayeval bench model` reports it; beside it
stand the processor seconds of all threads since the program's start, which other programs on the machine do not stretch.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

CONFIG = """
name: loading
checkpoint: {folder}
device: {device}
arms: [{{name: exact, executor: exact, state_storage: float32}}]
workloads: [{{name: ids, kind: perplexity, sources: [{{random_ids: {{documents: 1, tokens: 2, seed: 0}}}}], context: 2}}]
"""


def forget(files):
    for file in files:
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def cat_seconds(files):
    start = time.monotonic()
    subprocess.run(["cat", *map(str, files)], stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - start


def processor_seconds(process):
    fields = pathlib.Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # in the program and in the kernel for it


def load_seconds(program, config):
    """(seconds of load_model, processor seconds until it was done); what follows the load is not waited for."""
    with subprocess.Popen([program, "bench", "model", str(config), "--batch=1", "--rounds=1"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as running:
        line = running.stderr.readline()
        found = re.search(r" parameters in ([0-9.]+) s$", line.rstrip())
        if found is None:
            sys.exit((line + running.stderr.read()).strip())
        processor = processor_seconds(running.pid)
        running.terminate()
    return float(found[1]), processor


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--program", default="build/release/bin/replayeval")
    arguments = parser.parse_args()
    files = sorted(arguments.checkpoint.glob("*.safetensors"))
    if not files:
        sys.exit(f"{arguments.checkpoint}: no *.safetensors here; expected a checkpoint folder with weights")
    gibibytes = sum(file.stat().st_size for file in files) / 2**30

    seconds = {"cat, cold": [], "load, cold": [], "load, cached": []}
    processor = []
    with tempfile.TemporaryDirectory() as scratch:
        config = pathlib.Path(scratch) / "loading.yaml"
        config.write_text(CONFIG.format(folder=json.dumps(str(arguments.checkpoint.resolve())), device=arguments.device),
                          encoding="utf-8")
        for _ in range(arguments.rounds):
            forget(files)
            seconds["cat, cold"].append(cat_seconds(files))
            forget(files)
            for name in ("load, cold", "load, cached"):
                wall, busy = load_seconds(arguments.program, config)
                seconds[name].append(wall)
                processor.append(busy)
    print(f"{gibibytes:.2f} GiB in {len(files)} files, {arguments.device}, {arguments.rounds} rounds")
    for name, values in seconds.items():
        median = statistics.median(values)
        print(f"{name:13} {median:6.2f} s [{min(values):.2f}, {max(values):.2f}]  {gibibytes / median:5.2f} GiB/s")
    print(f"processor seconds of a load, the program's start included: {statistics.median(processor):.2f}")


if __name__ == "__main__":
    main()
