"""Batches: windows of the encoded text, and recall documents made on the fly by worker processes."""

import collections
import gzip
import multiprocessing
import os
import sys

import numpy as np
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "datasets"))
import recall_documents as recall  # noqa: E402

worker = {}


def start_worker(tokenizer, filler_file):
    import sentencepiece
    worker["sp"] = sentencepiece.SentencePieceProcessor(model_file=tokenizer)
    worker["cache"] = {}
    with gzip.open(filler_file, "rt", encoding="utf-8") as stream:
        worker["lines"] = stream.read().split("\n")


def encode_cached(text):
    """Templates and filler lines come back again and again."""
    cache = worker["cache"]
    ids = cache.get(text)
    if ids is None:
        ids = worker["sp"].encode(text)
        if len(cache) < 400000:
            cache[text] = ids
    return ids


def recall_rows(seed, rows, length, document_lengths, most_facts, filler):
    """[rows, length + 1] token ids and, for the targets, whether a token belongs to an answer.

    A row is filled with whole documents of lengths drawn from `document_lengths`, each begun by <s>.
    """
    rng = recall.Random(seed)
    bos, eos = worker["sp"].bos_id(), worker["sp"].eos_id()
    ids = np.zeros((rows, length + 1), dtype=np.uint16)
    answer = np.zeros((rows, length + 1), dtype=bool)
    for row in range(rows):
        at = 0
        while at < length + 1:
            wanted = min(rng.choice(document_lengths), length + 1 - at)
            segments = recall.training_segments(rng, wanted, lambda text: len(encode_cached(text)), worker["lines"],
                                                most_facts, filler * (0.5 + rng.unit()))
            document, spans = recall.encode(segments, encode_cached, (bos,))
            document = document[:wanted - 1] + [eos]
            ids[row, at:at + len(document)] = document
            for (kind, _), (start, end) in zip(segments, spans):
                if kind == "answer":
                    answer[row, at + start:min(at + end, at + wanted - 1)] = True
            at += len(document)
    return ids, answer[:, 1:]


class RecallStream:
    """Recall rows for the coming steps, prepared ahead. Seeds are counted, so the order of workers does not matter."""

    def __init__(self, tokenizer, filler_file, seed, workers, ahead=24):
        self.pool = multiprocessing.get_context("fork").Pool(workers, start_worker, (tokenizer, filler_file))
        self.seed, self.ahead, self.queue, self.key = seed, ahead, collections.deque(), None

    def next(self, *settings):
        if settings != self.key:
            self.queue.clear()  # a new phase: what was prepared for the old one is dropped
            self.key = settings
        while len(self.queue) < self.ahead:
            self.seed += 1
            self.queue.append(self.pool.apply_async(recall_rows, (self.seed * 7919, *settings)))
        return self.queue.popleft().get()

    def close(self):
        self.pool.terminate()


class TextStream:
    """Windows of the training text, drawn with replacement, a part of them beginning where a document begins."""

    def __init__(self, path, device, seed, at_start=0.3):
        arrays = np.load(path)
        self.ids = torch.from_numpy(arrays["ids"].astype(np.int16)).to(device)  # vocabularies here are below 2^15
        self.starts = torch.from_numpy(arrays["starts"]).to(device)
        self.generator = torch.Generator(device=device).manual_seed(seed)
        self.device, self.at_start = device, at_start

    def next(self, rows, length):
        limit = len(self.ids) - length - 1
        begin = torch.randint(limit, (rows,), device=self.device, generator=self.generator)
        document = self.starts[torch.randint(len(self.starts), (rows,), device=self.device, generator=self.generator)]
        whole = torch.rand(rows, device=self.device, generator=self.generator) < self.at_start
        begin = torch.where(whole, document.clamp(max=limit), begin)
        return self.ids[begin[:, None] + torch.arange(length + 1, device=self.device)].long()
