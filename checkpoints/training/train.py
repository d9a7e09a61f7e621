#!/usr/bin/env python3
"""Train a small hybrid on the encoded text and on recall documents, against the clock.

    train.py --config checkpoints/tiny-nemotron-h/config.json --seconds 400 --out OUT

The schedule is a function of elapsed time, so that the run always ends with its decay done: learning rate up in the
first 2 %, constant, then linearly to zero over the last half. Sequence lengths grow in phases (2048, 4096, 8192) with a
constant number of tokens a step. About a third of all tokens are recall documents, whose facts, distances and filler
grow over the first phase; their answer tokens weigh more in the loss, everything else in them less, because names that
were drawn at random teach nothing.

Writes OUT/model-*.safetensors (bfloat16, at the middle and at the end), OUT/master-*.safetensors (float32, to go on
from), OUT/losses.jsonl. With --state, everything a run needs to go on where it was stopped is written there every
minute, at a SIGTERM and when --stop-after is reached; the same command then goes on, its clock included.
"""

import argparse
import datetime
import json
import os
import signal
import sys
import time

import numpy as np
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from data import RecallStream, TextStream  # noqa: E402
from model import Hybrid, read_config  # noqa: E402
from optimizer import Optimizer  # noqa: E402
from shards import load_shards, save_shards  # noqa: E402

# (until this share of the time, sequence length, lengths of recall documents)
PHASES = [
    (0.15, 2048, (256, 512, 1024)),
    (0.50, 2048, (512, 1024, 2048)),
    (0.75, 4096, (1024, 2048, 4096)),
    (1.01, 8192, (1024, 2048, 4096, 8192)),
]
ANSWER_WEIGHT, RECALL_WEIGHT = 2.0, 0.25
STATE_EVERY = 60.0  # seconds


def learning_rate(progress, decay):
    if progress < 0.02:
        return 0.1 + 0.9 * progress / 0.02
    return max(0.0, min(1.0, (1.0 - progress) / decay))


def recall_settings(progress, length, document_lengths):
    """Facts a document at most and share of filler, coarse steps so that prepared rows stay usable."""
    level = min(1.0, int(progress * 20) / 6)  # full difficulty from 30 % of the time on
    return length, document_lengths, int(6 + 42 * level), 0.1 + 0.4 * level


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--config", required=True)
    parser.add_argument("--tokens", default=".data/tokens")
    parser.add_argument("--tokenizer", help="default: tokenizer.model beside the config")
    parser.add_argument("--out", required=True)
    parser.add_argument("--seconds", type=float, required=True, help="time for training, compilation included")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tokens-per-step", type=int, default=65536)
    parser.add_argument("--recall-share", type=float, default=0.34)
    parser.add_argument("--decay", type=float, default=0.5, help="share of the time over which the rate falls")
    parser.add_argument("--muon-lr", type=float, default=0.02)
    parser.add_argument("--adam-lr", type=float, default=3e-3)
    parser.add_argument("--workers", type=int, default=10)
    parser.add_argument("--eager", action="store_true", help="no torch.compile")
    parser.add_argument("--start", help="folder with master-*.safetensors to go on from")
    parser.add_argument("--from-progress", type=float, default=0.0, help="where in the phases to begin (going on)")
    parser.add_argument("--compile-cache", help="file with compiled kernels of an earlier run; written if missing")
    parser.add_argument("--only-length", type=int, help="one sequence length for the whole run (measuring)")
    parser.add_argument("--state", help="file to go on from if it is there, and to write every minute")
    parser.add_argument("--stop-after", type=float, default=float("inf"),
                        help="write --state and stop after this many seconds of this call")
    return parser.parse_args()


class Training:
    """The model, its data and its optimizer, and how far they are."""

    def __init__(self, options):
        self.options = options
        self.called = self.begin = time.monotonic()
        self.step = self.tokens = 0
        self.saved_middle = False
        config = read_config(options.config)
        tokenizer = options.tokenizer or os.path.join(os.path.dirname(options.config), "tokenizer.model")
        # Workers are forked before the GPU is touched.
        self.recall = RecallStream(tokenizer, os.path.join(options.tokens, "filler.txt.gz"), options.seed * 1000000,
                                   options.workers)
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.dtype = torch.bfloat16 if self.device == "cuda" else torch.float32
        torch.manual_seed(options.seed)
        torch.set_float32_matmul_precision("high")
        if options.compile_cache and os.path.exists(options.compile_cache):
            with open(options.compile_cache, "rb") as file:
                torch.compiler.load_cache_artifacts(file.read())
        self.model = Hybrid(config, compiled=not options.eager)
        if options.start:
            load_shards(self.model, options.start, "master")
        self.model.to(self.device)
        self.optimizer = Optimizer(self.model, options.muon_lr, options.adam_lr)
        self.text = TextStream(os.path.join(options.tokens, "train.npz"), self.device, options.seed)
        os.makedirs(options.out, exist_ok=True)
        self.log = open(os.path.join(options.out, "losses.jsonl"), "a", encoding="utf-8")

    def note(self, **record):
        line = json.dumps(record)
        print(line, flush=True)
        self.log.write(line + "\n")
        self.log.flush()

    def elapsed(self):
        return time.monotonic() - self.begin

    def progress(self):
        share = self.elapsed() / self.options.seconds
        return self.options.from_progress + (1 - self.options.from_progress) * share

    def synchronize(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def save_state(self):
        """Whole or not at all: a state that was being written when time ran out must not hide the one before."""
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state(),
                 "text_generator": self.text.generator.get_state(), "recall_seed": self.recall.seed, "step": self.step,
                 "tokens": self.tokens, "elapsed": self.elapsed(), "saved_middle": self.saved_middle}
        torch.save(state, self.options.state + ".new")
        os.replace(self.options.state + ".new", self.options.state)

    def load_state(self):
        state = torch.load(self.options.state, map_location=self.device)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state(state["optimizer"])
        self.text.generator.set_state(state["text_generator"].cpu())
        self.recall.seed, self.step, self.tokens = state["recall_seed"], state["step"], state["tokens"]
        self.saved_middle = state["saved_middle"]
        self.begin -= state["elapsed"]

    def batch(self, progress):
        """[rows, length + 1] token ids, text first; for the recall rows which targets belong to answers; text rows."""
        _, length, document_lengths = next(phase for phase in PHASES if progress < phase[0])
        length = self.options.only_length or length
        rows = self.options.tokens_per_step // length
        recall_count = max(1, round(rows * self.options.recall_share))
        recall_ids, answer = self.recall.next(recall_count, *recall_settings(progress, length, document_lengths))
        recall_ids = torch.from_numpy(recall_ids.astype(np.int16)).to(self.device, non_blocking=True).long()
        answer = torch.from_numpy(answer).to(self.device, non_blocking=True)
        return torch.cat([self.text.next(rows - recall_count, length), recall_ids]), answer, rows - recall_count

    def train_step(self, progress, ids, answer, text_rows):
        """One update. Returns the length and, on the device, the mean losses of text, answers and recall documents."""
        losses = self.model.losses(ids[:, :-1], ids[:, 1:], self.dtype)
        weight = RECALL_WEIGHT + (ANSWER_WEIGHT - RECALL_WEIGHT) * answer.float()
        text_losses, recall_losses = losses[:text_rows], losses[text_rows:]
        ((text_losses.sum() + (recall_losses * weight).sum()) / losses.numel()).backward()
        self.optimizer.step(learning_rate(progress, self.options.decay))
        self.step += 1
        self.tokens += losses.numel()
        with torch.no_grad():
            of_answers = (recall_losses * answer).sum() / answer.sum().clamp(min=1)
            return losses.shape[1], torch.stack([text_losses.mean(), of_answers, recall_losses.mean()]).detach()


def warm_up(training):
    """Every shape of the run is compiled before the first step; the second round is timed."""
    options, model = training.options, training.model
    for length in sorted({options.only_length} if options.only_length else {phase[1] for phase in PHASES}):
        for repeat in range(2):
            training.synchronize()
            started = time.monotonic()
            for _ in range(1 + 3 * repeat):
                ids = training.text.next(options.tokens_per_step // length, length)
                model.losses(ids[:, :-1], ids[:, 1:], training.dtype).mean().backward()
            training.synchronize()
            took = (time.monotonic() - started) / (1 + 3 * repeat)
            training.note(event="warm-up", length=length, repeat=repeat, seconds=round(took, 3),
                          tokens_per_second=round(options.tokens_per_step / took))
    for p in model.parameters():
        p.grad = None


def train(training):
    """Until the time is over (True) or this call has to stop (False)."""
    options = training.options
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
    last_time, last_tokens, last_state, waited, window = time.monotonic(), training.tokens, time.monotonic(), 0.0, []
    while training.elapsed() < options.seconds:
        if stop or time.monotonic() - training.called > options.stop_after:
            return False
        progress = training.progress()
        waiting = time.monotonic()
        batch = training.batch(progress)
        waited += time.monotonic() - waiting
        length, means = training.train_step(progress, *batch)
        window.append(means)
        if training.step % 50 == 0 or training.step in (1, 10, 20):
            values, now = torch.stack(window).mean(0).tolist(), time.monotonic()
            training.note(step=training.step, tokens=training.tokens, seconds=round(training.elapsed(), 1), length=length,
                          progress=round(progress, 4), text_loss=round(values[0], 4), answer_loss=round(values[1], 4),
                          recall_loss=round(values[2], 4), waited=round(waited, 2),
                          tokens_per_second=round((training.tokens - last_tokens) / (now - last_time)))
            last_time, last_tokens, waited, window = now, training.tokens, 0.0, []
        if options.state and time.monotonic() - last_state > STATE_EVERY:
            training.save_state()
            last_state = time.monotonic()
        if progress > 0.75 and not training.saved_middle and not options.from_progress and not options.only_length:
            save_shards(training.model, options.out)
            training.saved_middle = True
    return True


def save_compile_cache(file):
    artifacts = torch.compiler.save_cache_artifacts()
    if artifacts:
        with open(file, "wb") as stream:
            stream.write(artifacts[0])


def main():
    options = parse_options()
    training = Training(options)
    resumed = bool(options.state and os.path.exists(options.state))
    if resumed:
        training.load_state()
    training.note(event="resume" if resumed else "start",
                  date=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                  device=torch.cuda.get_device_name() if training.device == "cuda" else "cpu", torch=torch.__version__,
                  arguments={k: v for k, v in vars(options).items() if k not in ("out", "compile_cache", "state")},
                  parameters=sum(p.numel() for p in training.model.parameters()), train_tokens=len(training.text.ids))
    if training.device == "cuda":
        warm_up(training)
    finished = train(training)
    training.recall.close()
    if training.device == "cuda":
        training.synchronize()
        training.note(event="memory", peak_bytes=torch.cuda.max_memory_allocated())
    if options.compile_cache and not os.path.exists(options.compile_cache):
        save_compile_cache(options.compile_cache)
    if finished:
        save_shards(training.model, options.out)
        save_shards(training.model, options.out, torch.float32, 15 << 20, "master")
    elif options.state:
        training.save_state()
    training.note(event="end" if finished else "stopped", steps=training.step, tokens=training.tokens,
                  seconds=round(training.elapsed(), 1))


if __name__ == "__main__":
    main()
