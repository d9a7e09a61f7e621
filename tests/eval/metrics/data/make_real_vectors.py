#!/usr/bin/env python3
"""Writes the .npy files beside it (README.md says what is in them).

    make_real_vectors.py HELDOUT RUN SAME_TOP1.npz

HELDOUT: result folder of configs/demo.yaml with 32,768 tokens of each source. RUN: that of a run of the same arms with
two multiple-choice tasks, next_word_2 and next_word_4, and a generation workload `drawn` of two repeats. SAME_TOP1.npz:
arrays exact_bf16 and replay_bf16, one flag a token of HELDOUT, from `replayeval logits` of its windows.
"""

import json
import pathlib
import sys
import zlib

import numpy

ARMS = ("exact-bf16", "replay-bf16")
PIECE = 64
FOLDER = pathlib.Path(__file__).parent


def pieces_of(document):
    """Begin and end of contiguous pieces of near-equal length that cross no document."""
    edges = numpy.flatnonzero(numpy.diff(document, prepend=-1, append=-1))
    for begin, end in zip(edges, edges[1:]):
        count = max(1, round((end - begin) / PIECE))
        cuts = [begin + (end - begin) * k // count for k in range(count + 1)]
        yield from zip(cuts, cuts[1:])


def write_pieces(tokens, same_top1):
    document = numpy.load(tokens / "heldout.index.npy")[:, 0]
    baseline = numpy.load(tokens / "heldout.exact-f32.npy")
    columns = [numpy.ones_like(baseline), baseline]
    for arm in ARMS:
        own = numpy.load(tokens / f"heldout.{arm}.npy")
        columns += [own - baseline, numpy.load(tokens / f"heldout.{arm}.kl.npy"), numpy.exp(own) - numpy.exp(baseline),
                    same_top1[arm.replace("-", "_")]]
    rows = [[document[begin], *(column[begin:end].sum(dtype=numpy.float64) for column in columns)]
            for begin, end in pieces_of(document)]
    numpy.save(FOLDER / "heldout_pieces.npy", numpy.array(rows, dtype=numpy.float64))


def rows_of(file):
    with open(file) as stream:
        return [json.loads(line) for line in stream]


def write_answers(samples):
    rows = [[choices, row["acc"]] for choices in (2, 4)
            for row in rows_of(samples / f"next_word_{choices}.exact-f32.jsonl")]
    numpy.save(FOLDER / "answers.npy", numpy.array(rows, dtype=numpy.float64))


def repeated_span(tokens):
    """The length of the longest span that occurs twice without overlapping itself."""
    longest = 0
    for first in range(len(tokens)):
        for second in range(first + 1, len(tokens)):
            length = 0
            while second + length < len(tokens) and first + length < second and \
                    tokens[first + length] == tokens[second + length]:
                length += 1
            longest = max(longest, length)
    return longest


def signs_of(tokens, text, limit):
    grams = list(zip(tokens, tokens[1:], tokens[2:]))
    data = text.encode()
    return [len(tokens), len(tokens) == limit, repeated_span(tokens), 1 - len(set(grams)) / len(grams) if grams else 0,
            len(data) / len(zlib.compress(data, 6)) if data else 1]


def write_generated(run):
    columns = []
    for arm in ("exact-f32", "exact-bf16"):
        ids = numpy.load(run / "tokens" / f"drawn.{arm}.generated.npy")
        texts = [text for row in rows_of(run / "samples" / f"drawn.{arm}.jsonl") for text in row["resps"][0]]
        columns.append([signs_of([int(token) for token in row if token >= 0], text, ids.shape[1])
                        for row, text in zip(ids, texts, strict=True)])
    rows = [[i // 2, *baseline, *arm] for i, (baseline, arm) in enumerate(zip(*columns))]
    numpy.save(FOLDER / "generated.npy", numpy.array(rows, dtype=numpy.float64))


def main():
    heldout, run, same_top1 = (pathlib.Path(argument) for argument in sys.argv[1:4])
    write_pieces(heldout / "tokens", numpy.load(same_top1))
    write_answers(run / "samples")
    write_generated(run)


if __name__ == "__main__":
    main()
