#!/usr/bin/env python3
"""Interpolated modified Kneser-Ney 5-gram over token ids: the baseline that the checkpoint has to beat.

    ngram.py [--tokens .data/tokens] [--order 5]

Trained on the same tokens, scored on the same held-out tokens, same vocabulary. Every document is preceded by
order - 1 times <s>, so histories never reach into another document. An n-gram is one integer of 12 bits a token; counts
are sorted arrays and look-ups are binary searches, which keeps this short.
"""

import argparse
import json
import os

import numpy as np

BITS = 12  # vocabularies up to 4096


def pack(ids, order):
    """Key of the n-gram that ends at each position, for positions order-1 and later."""
    keys = np.zeros(len(ids) - order + 1, dtype=np.uint64)
    for k in range(order):
        keys = (keys << np.uint64(BITS)) | ids[k:len(ids) - order + 1 + k].astype(np.uint64)
    return keys


class Order:
    """Counts of one order: n-grams with discounts, and their histories with totals and back-off mass."""

    def __init__(self, keys, counts):
        self.keys, self.counts = keys, counts
        # Chen and Goodman's three discounts from the counts of counts.
        n1, n2, n3, n4 = (float(np.count_nonzero(counts == k)) for k in (1, 2, 3, 4))
        y = n1 / (n1 + 2 * n2)
        self.discounts = np.array([0.0, 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3])
        histories = keys >> np.uint64(BITS)
        first = np.flatnonzero(np.concatenate([[True], histories[1:] != histories[:-1]]))
        self.histories = histories[first]
        self.totals = np.add.reduceat(counts, first).astype(np.float64)
        self.spare = np.add.reduceat(self.discounts[np.minimum(counts, 3)], first)

    def probability(self, keys, lower):
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        counts = np.where(self.keys[place] == keys, self.counts[place], 0)
        histories = keys >> np.uint64(BITS)
        place = np.minimum(np.searchsorted(self.histories, histories), len(self.histories) - 1)
        known = self.histories[place] == histories
        direct = np.maximum(counts - self.discounts[np.minimum(counts, 3)], 0)
        return np.where(known, (direct + self.spare[place] * lower) / self.totals[place], lower)


class KneserNey:
    def __init__(self, ids, starts, bos, order, vocab):
        pieces = np.split(ids.astype(np.uint16), starts[1:])
        padding = np.full(order - 2, bos, dtype=np.uint16)  # each document already begins with one <s>
        stream = np.concatenate([part for piece in pieces for part in (padding, piece)])
        self.order, self.bos, self.vocab, self.orders = order, bos, vocab, [None] * (order + 1)
        above = None
        for k in range(order, 0, -1):
            keys = pack(stream, k)
            keys = keys[(keys & np.uint64((1 << BITS) - 1)) != bos]  # <s> is never predicted
            keys.sort()
            first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
            raw = np.diff(np.append(first, len(keys)))
            keys = keys[first]
            if above is None:
                counts = raw
            else:
                # Lower orders count how many different tokens come before, except at a document's beginning, where only
                # <s> can.
                suffixes = np.sort(above & np.uint64((1 << (BITS * k)) - 1))
                at = np.searchsorted(suffixes, keys)
                counts = np.searchsorted(suffixes, keys, side="right") - at
                if k > 1:
                    begins = (keys >> np.uint64(BITS * (k - 1))) == bos
                    counts = np.where(begins, raw, counts)
            self.orders[k] = Order(keys, counts.astype(np.int64))
            above = keys

    def log_probabilities(self, ids):
        """Natural logarithm of every token's probability, one document."""
        stream = np.concatenate([np.full(self.order - 1, self.bos, dtype=np.uint16), ids])
        p = np.full(len(ids), 1.0 / self.vocab)
        for k in range(1, self.order + 1):
            p = self.orders[k].probability(pack(stream[self.order - k:], k), p)
        return np.log(p)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tokens", default=".data/tokens")
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--bos", type=int, default=1)
    parser.add_argument("--vocab", type=int, default=4096)
    parser.add_argument("--out", default="-")
    options = parser.parse_args()
    train = np.load(os.path.join(options.tokens, "train.npz"))
    model = KneserNey(train["ids"], train["starts"], options.bos, options.order, options.vocab)
    sums = {}
    for name, ids in np.load(os.path.join(options.tokens, "heldout.npz")).items():
        for key in (name.split("/")[0], "all"):
            loss, count = sums.get(key, (0.0, 0))
            sums[key] = loss - model.log_probabilities(ids).sum(), count + len(ids)
    result = {"model": f"interpolated modified Kneser-Ney, order {options.order}",
              "train_tokens": int(len(train["ids"])),
              "perplexity": {key: float(np.exp(loss / count)) for key, (loss, count) in sums.items()},
              "tokens": {key: count for key, (_, count) in sums.items()}}
    text = json.dumps(result, indent=2)
    if options.out == "-":
        print(text)
    else:
        with open(options.out, "w", encoding="utf-8") as stream:
            stream.write(text + "\n")


if __name__ == "__main__":
    main()
