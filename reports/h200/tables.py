#!/usr/bin/env python3
"""The tables of reports/h200/README.md and of the README, out of the published results.

    tables.py            prints all of them
    tables.py --write    puts each between its markers in the two files (`<!-- table NAME -->` … `<!-- end -->`)

tests/reports/test_study.py holds the files to what this prints. Standard library only.
"""

import argparse
import functools
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
CHECKPOINTS = {"tiny-nemotron-h": "Mamba-2", "tiny-qwen3-next": "Gated DeltaNet"}
TRAINED = 8192  # tokens: what both checkpoints were trained on at most


NOT_RUN = "not run"


@functools.cache
def load(name):
    with open(os.path.join(HERE, name, "results.json"), encoding="utf-8") as file:
        return json.load(file)


def runs(suffix=""):
    """(layers, results) of each checkpoint whose run of this suffix is published."""
    for checkpoint, family in CHECKPOINTS.items():
        if os.path.exists(os.path.join(HERE, checkpoint + suffix, "results.json")):
            yield family, load(checkpoint + suffix)


def drawn_texts(family, arm):
    """The largest published set of drawn texts of these layers that has the arm."""
    for suffix in ("-texts", ""):
        for layers, results in runs(suffix):
            work = workload(results, "drawn")
            if layers == family and work and arm in work["deltas"]:
                return work
    return None


def texts_of(work, arm):
    return work["divergence"][arm]["identical"]["n"]


@functools.cache
def speed(name):
    with open(os.path.join(HERE, "speed", name + ".json"), encoding="utf-8") as file:
        return json.load(file)


def workload(results, name):
    """None where that part of the run is not published."""
    return next((one for one in results["workloads"] if one["name"] == name), None)


def markdown(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def rounded(value, digits):
    """Without a minus before a zero."""
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text


def with_interval(delta, scale, digits):
    if "low" not in delta:
        return rounded(scale * delta["value"], digits)
    low, high = (rounded(scale * delta[end], digits) for end in ("low", "high"))
    return f"{rounded(scale * delta['value'], digits)} [{low}, {high}]"


def arms_of(results):
    return [arm["name"] for arm in results["arms"] if arm["name"] != results["baseline"]]


def worst_state_error(work, arm, depth):
    found = [error["relative_frobenius"] for error in work["state_errors"]
             if error["arm"] == arm and error["depth"] == depth]
    return f"{max(found):.1e}" if found else "–"


def pooled_accuracy(results, arm):
    pooled = [family["by_question"] for family in results.get("task_families", [])
              if (family["metric"], family["arm"]) == ("acc", arm)]
    return with_interval(pooled[0], 100, 2) if pooled else NOT_RUN


def right_answers(cells, arm):
    """Percent, over all answers of some cells."""
    counts = [(cell["accuracy"][arm]["value"], cell["accuracy"][arm]["n"]) for cell in cells]
    return 100 * sum(value * n for value, n in counts) / sum(n for _, n in counts)


def recall_within_training(results, arm):
    """Right answers of all cells with a signal to TRAINED tokens, less the baseline's, in points."""
    if workload(results, "recall") is None:
        return NOT_RUN
    cells = [cell for cell in workload(results, "recall")["recall"] if cell["signal"] and cell["length"] <= TRAINED]
    return rounded(right_answers(cells, arm) - right_answers(cells, results["baseline"]), 1)


def summary():
    """One row an arm of the served runs: what a reader wants first; texts are counted where they are not the most."""
    rows = []
    for family, results in runs():
        text = workload(results, "text")
        most = max(texts_of(drawn_texts(family, arm), arm) for arm in arms_of(results))
        for arm in arms_of(results):
            drawn = drawn_texts(family, arm)
            rows.append([family, f"`{arm}`",
                         with_interval(text["deltas"][arm]["perplexity_relative"], 100, 3),
                         f"{text['divergence'][arm]['kl_mean']['value']:.1e}",
                         pooled_accuracy(results, arm), recall_within_training(results, arm),
                         with_interval(drawn["deltas"][arm]["repeated_3grams"], 100, 1)
                         + ("" if texts_of(drawn, arm) == most else f" ({texts_of(drawn, arm)} texts)"),
                         worst_state_error(text, arm, "gold")])
    return markdown(["layers", "arm", "ΔPPL %", "mean KL", "Δ accuracy, points", "Δ recall, points",
                     "Δ repeated 3-grams, points", "state error vs gold"], rows)


def float32():
    """The same text with float32 dense layers: nothing but what the arms round."""
    rows = []
    for family, results in runs("-float32"):
        text = workload(results, "text")
        for arm in arms_of(results):
            metrics = text["divergence"][arm]
            rows.append([family, f"`{arm}`", with_interval(text["deltas"][arm]["perplexity_relative"], 100, 5),
                         f"{metrics['kl_mean']['value']:.1e}", f"{metrics['kl_max']['value']:.1e}",
                         f"{100 * metrics['same_top1']['value']:.3f}", worst_state_error(text, arm, "gold")])
    return markdown(["layers", "arm", "ΔPPL %", "mean KL", "max KL", "same top-1 %", "state error vs gold"], rows)


def buffer_lengths():
    rows = []
    for family, results in runs("-buffer-lengths"):
        text = workload(results, "text")
        for arm in arms_of(results):
            rows.append([family, f"`{arm}`", with_interval(text["deltas"][arm]["perplexity_relative"], 100, 4),
                         f"{text['divergence'][arm]['kl_mean']['value']:.1e}",
                         worst_state_error(text, arm, "local"), worst_state_error(text, arm, "gold")])
    return markdown(["layers", "arm", "ΔPPL %", "mean KL", "state error, local", "vs gold"], rows)


def long_text():
    """ΔPPL by position in windows of up to 32,768 tokens."""
    tables = []
    for family, results in runs():
        if workload(results, "long-text") is None:
            continue
        buckets = [bucket for bucket in workload(results, "long-text")["positions"] if bucket["end"] > 512]
        header = [f"{family}: position"] + [f"{bucket['begin']:,}–{bucket['end']:,}" for bucket in buckets]
        rows = [["baseline's perplexity"] + [f"{bucket['perplexity'][results['baseline']]['value']:.2f}"
                                             for bucket in buckets]]
        for arm in arms_of(results):
            ratios = [bucket["perplexity"][arm]["value"] / bucket["perplexity"][results["baseline"]]["value"] - 1
                      for bucket in buckets]
            rows.append([f"`{arm}`, ΔPPL %"] + [rounded(100 * ratio, 3) for ratio in ratios])
        tables.append(markdown(header, rows))
    return "\n\n".join(tables)


def worst_local_error(work, arm, position):
    return max(error["relative_frobenius"] for error in work["state_errors"]
               if (error["depth"], error["arm"], error["position"]) == ("local", arm, position))


def task_state_error():
    """The same after 512 and 16,000 tokens of running text, questions and documents to recall from."""
    tables = []
    for family, results in runs("-states"):
        columns = []
        for position in sorted({error["position"] for work in results["workloads"] for error in work["state_errors"]}):
            columns += [(work, position) for work in results["workloads"] if position in (512, 16000)
                        and any(error["position"] == position for error in work["state_errors"])]
        rows = [[f"`{arm}`"] + [f"{worst_local_error(work, arm, position):.1e}" for work, position in columns]
                for arm in arms_of(results)]
        header = [f"{work['name']}, {position:,}" for work, position in columns]
        tables.append(markdown([f"{family}: reading, tokens"] + header, rows))
    return "\n\n".join(tables)


def state_error():
    """Of the worst layer, each arm fed the baseline's mixer inputs, by tokens decoded."""
    tables = []
    for family, results in runs():
        work = workload(results, "long-text")
        if work is None:
            continue
        positions = sorted({error["position"] for error in work["state_errors"] if error["depth"] == "local"})
        rows = [[f"`{arm}`"] + [f"{worst_local_error(work, arm, position):.1e}" for position in positions]
                for arm in arms_of(results)]
        tables.append(markdown([f"{family}: tokens"] + [f"{position:,}" for position in positions], rows))
    return "\n\n".join(tables)


def recall():
    """Right answers by length, all depths and tasks together, percent."""
    tables = []
    for family, results in runs():
        if workload(results, "recall") is None:
            continue
        cells = workload(results, "recall")["recall"]
        lengths = sorted({cell["length"] for cell in cells})
        rows = []
        for arm in [arm["name"] for arm in results["arms"]]:
            row = [f"`{arm}`"]
            for length in lengths:
                row.append(f"{right_answers([cell for cell in cells if cell['length'] == length], arm):.1f}")
            rows.append(row)
        tables.append(markdown([f"{family}: tokens"] + [f"{length:,}" for length in lengths], rows))
    return "\n\n".join(tables)


def generation():
    rows = []
    for family, results in runs():
        for name in ("greedy", "drawn"):
            for arm in arms_of(results):
                work = drawn_texts(family, arm) if name == "drawn" else workload(results, name)
                if work is None:
                    continue
                deltas = work["deltas"][arm]
                rows.append([family, f"{name}, {texts_of(work, arm):,}", f"`{arm}`", f"{100 * work['divergence'][arm]['identical']['value']:.1f}",
                             with_interval(deltas["looped"], 100, 1),
                             with_interval(deltas["looped_to_end"], 100, 1),
                             with_interval(deltas["repeated_3grams"], 100, 2),
                             with_interval(deltas["compression_ratio"], 1, 2)])
    return markdown(["layers", "texts", "arm", "identical %", "Δ looped, points", "Δ looped to the end, points",
                     "Δ repeated 3-grams, points", "Δ compression ratio"], rows)


def microseconds(cell):
    exact, replay, mixed = (cell[name]["microseconds"] for name in ("exact", "replay", "replay_mixed"))
    return f"{exact:.1f} / {replay:.1f} = {exact / replay:.2f} ({exact / mixed:.2f})"


def kernels():
    """A layer's decode step: exact / replay, microseconds, the ratio, and that at mixed ring positions."""
    rows, batches = [], (1, 8, 32, 128, 256, 512)
    for file, family in (("kernels-mamba2", "Mamba-2"), ("kernels-gated_delta", "Gated DeltaNet"),
                         ("kernels-gated_delta-inputs", "Gated DeltaNet, ring of inputs"),
                         ("kernels-kda", "Kimi Delta Attention")):
        cells = speed(file)["rows"]
        for state in dict.fromkeys(cell["state"] for cell in cells):
            rows.append([family, state] + [microseconds(cell) for batch in batches for cell in cells
                                           if (cell["state"], cell["batch"]) == (state, batch)])
    return markdown(["layers", "state"] + [f"batch {batch}" for batch in batches], rows)


def ring_lengths():
    """Exact over replay, times as fast, by the ring's length."""
    lengths, rows = (4, 8, 16, 32), []
    for family, layers in (("mamba2", "Mamba-2"), ("gated_delta", "Gated DeltaNet")):
        files = [speed(f"kernels-{family}" + ("" if length == 16 else f"-L{length}"))["rows"] for length in lengths]
        for cell in files[0]:
            key = (cell["state"], cell["batch"])
            same = [next(c for c in rows_of if (c["state"], c["batch"]) == key) for rows_of in files]
            rows.append([layers, *map(str, key)] + [f"{c['exact']['microseconds'] / c['replay']['microseconds']:.2f}"
                                                    for c in same])
    return markdown(["layers", "state", "batch"] + [f"L = {length}" for length in lengths], rows)


def memory():
    """What a sequence's state and ring take in the served runs, and the sum over the exact float32 state."""
    rows = []
    for family, results in runs():
        arms = workload(results, "text")["arms"]
        whole = arms[results["baseline"]]["state_bytes"]
        for arm in arms_of(results):
            state, ring = arms[arm]["state_bytes"], arms[arm].get("ring_bytes", 0)
            rows.append([family, f"`{arm}`", f"{state / 1024:,.0f}", f"{ring / 1024:,.0f}",
                         f"{(state + ring) / whole:.2f}"])
    return markdown(["layers", "arm", "state, KiB", "ring, KiB", "both, of a float32 state"], rows)


def paired_arms(bench):
    """(state type, exact arm, replay arm) of a `bench model` file."""
    exact = {arm["state_storage"]["dtype"]: arm["name"] for arm in bench["arms"] if arm["executor"] == "exact"}
    for arm in bench["arms"]:
        if arm["executor"] == "replay":
            yield arm["state_storage"]["dtype"], exact[arm["state_storage"]["dtype"]], arm["name"]


def model():
    """A whole step of a shape with random weights: exact / replay, milliseconds, and the ratio."""
    rows, batches = [], (1, 8, 32, 128, 256, 512)
    for file, name in (("model", "8B, Mamba-2"), ("model-qwen3.5-9b", "9B, Gated DeltaNet"),
                       ("model-context", "8B, Mamba-2"), ("model-qwen3.5-9b-context", "9B, Gated DeltaNet")):
        if not os.path.exists(os.path.join(HERE, "speed", file + ".json")):
            continue
        bench = speed(file)
        steps = {(row["arm"], row["batch"]): 1e3 * row["step_seconds"]["median"] for row in bench["rows"]}
        for state, exact, replay in paired_arms(bench):
            rows.append([name, f"{bench['context']:,}", state] + [
                f"{steps[exact, batch]:.2f} / {steps[replay, batch]:.2f} = {steps[exact, batch] / steps[replay, batch]:.2f}"
                if (exact, batch) in steps else "" for batch in batches])
    return markdown(["shape", "context", "state"] + [f"batch {batch}" for batch in batches], rows)


TABLES = {"summary": summary, "float32": float32, "buffer-lengths": buffer_lengths, "long-text": long_text,
          "state-error": state_error, "task-state-error": task_state_error,
          "recall": recall, "generation": generation, "kernels": kernels, "ring-lengths": ring_lengths,
          "memory": memory, "model": model}


def with_tables(text):
    """`text` with every marked table made anew."""
    def made(match):
        if match[1] not in TABLES:
            raise KeyError(f"no table '{match[1]}'; expected one of {', '.join(TABLES)}")
        return f"<!-- table {match[1]} -->\n\n{TABLES[match[1]]()}\n\n<!-- end -->"
    return re.sub(r"<!-- table ([a-z0-9-]+) -->\n.*?<!-- end -->", made, text, flags=re.S)


FILES = [os.path.join(HERE, "README.md"), os.path.join(ROOT, "README.md")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--write", action="store_true", help="put the tables into the two files")
    if parser.parse_args().write:
        for path in FILES:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            with open(path, "w", encoding="utf-8") as file:
                file.write(with_tables(text))
        return
    for name, table in TABLES.items():
        print(f"{name}\n\n{table()}\n")


if __name__ == "__main__":
    sys.exit(main())
