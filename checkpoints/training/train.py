#!/usr/bin/env python3
"""Train a small hybrid on the encoded text and on recall documents, against the clock.

    train.py --config checkpoints/tiny-nemotron-h/config.json --seconds 400 --out OUT

The schedule is a function of elapsed time, so that the run always ends with its decay done: learning rate up in the
first 2 %, constant, then linearly to zero over the last half. Sequence lengths grow in phases (2048, 4096, 8192) with a
constant number of tokens a step. About a third of all tokens are recall documents, whose facts, distances and filler
grow over the first phase; their answer tokens weigh more in the loss, everything else in them less, because names that
were drawn at random teach nothing.

Writes OUT/model-*.safetensors (bfloat16, at the middle and at the end), OUT/master-*.safetensors (float32, to go on
from), OUT/losses.jsonl.
"""

import argparse
import datetime
import json
import os
import sys
import time

import numpy as np
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from data import RecallStream, TextStream  # noqa: E402
from model import Config, Hybrid, load_shards, save_shards  # noqa: E402
from optimizer import Optimizer  # noqa: E402

# (until this share of the time, sequence length, lengths of recall documents)
PHASES = [
    (0.15, 2048, (256, 512, 1024)),
    (0.50, 2048, (512, 1024, 2048)),
    (0.75, 4096, (1024, 2048, 4096)),
    (1.01, 8192, (1024, 2048, 4096, 8192)),
]
ANSWER_WEIGHT, RECALL_WEIGHT = 2.0, 0.25


def learning_rate(progress, decay):
    if progress < 0.02:
        return 0.1 + 0.9 * progress / 0.02
    return max(0.0, min(1.0, (1.0 - progress) / decay))


def recall_settings(progress, length, document_lengths):
    """Facts a document at most and share of filler, coarse steps so that prepared rows stay usable."""
    level = min(1.0, int(progress * 20) / 6)  # full difficulty from 30 % of the time on
    return length, document_lengths, int(6 + 42 * level), 0.1 + 0.4 * level


def main():
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
    options = parser.parse_args()

    begin = time.monotonic()
    config = Config.read(options.config)
    tokenizer = options.tokenizer or os.path.join(os.path.dirname(options.config), "tokenizer.model")
    # Workers are forked before the GPU is touched.
    stream = RecallStream(tokenizer, os.path.join(options.tokens, "filler.txt.gz"), options.seed * 1000000, options.workers)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(options.seed)
    torch.set_float32_matmul_precision("high")
    if options.compile_cache and os.path.exists(options.compile_cache):
        with open(options.compile_cache, "rb") as file:
            torch.compiler.load_cache_artifacts(file.read())
    model = Hybrid(config, compiled=not options.eager)
    if options.start:
        load_shards(model, options.start, "master")
    model.to(device)
    optimizer = Optimizer(model, options.muon_lr, options.adam_lr)
    text = TextStream(os.path.join(options.tokens, "train.npz"), device, options.seed)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32

    os.makedirs(options.out, exist_ok=True)
    log = open(os.path.join(options.out, "losses.jsonl"), "a", encoding="utf-8")

    def note(**record):
        line = json.dumps(record)
        print(line, flush=True)
        log.write(line + "\n")
        log.flush()

    note(event="start", date=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
         device=torch.cuda.get_device_name() if device == "cuda" else "cpu", torch=torch.__version__,
         arguments={k: v for k, v in vars(options).items() if k not in ("out", "compile_cache")},
         parameters=sum(p.numel() for p in model.parameters()), train_tokens=len(text.ids))

    # Every shape of the run is compiled before the first step; the second round is timed.
    if device == "cuda":
        for length in sorted({options.only_length} if options.only_length else {phase[1] for phase in PHASES}):
            for repeat in range(2):
                torch.cuda.synchronize()
                started = time.monotonic()
                for _ in range(1 + 3 * repeat):
                    ids = text.next(options.tokens_per_step // length, length)
                    model.losses(ids[:, :-1], ids[:, 1:], dtype).mean().backward()
                torch.cuda.synchronize()
                took = (time.monotonic() - started) / (1 + 3 * repeat)
                note(event="warm-up", length=length, repeat=repeat, seconds=round(took, 3),
                     tokens_per_second=round(options.tokens_per_step / took))
        for p in model.parameters():
            p.grad = None

    step = tokens = 0
    saved_middle = False
    last_time, last_tokens, waited = time.monotonic(), 0, 0.0
    window = []
    while True:
        elapsed = time.monotonic() - begin
        progress = options.from_progress + (1 - options.from_progress) * elapsed / options.seconds
        if elapsed >= options.seconds:
            break
        _, length, document_lengths = next(phase for phase in PHASES if progress < phase[0])
        length = options.only_length or length
        rows = options.tokens_per_step // length
        recall_count = max(1, round(rows * options.recall_share))

        waiting = time.monotonic()
        recall_ids, answer = stream.next(recall_count, *recall_settings(progress, length, document_lengths))
        waited += time.monotonic() - waiting
        recall_ids = torch.from_numpy(recall_ids.astype(np.int16)).to(device, non_blocking=True).long()
        answer = torch.from_numpy(answer).to(device, non_blocking=True)
        text_rows = rows - recall_count
        ids = torch.cat([text.next(text_rows, length), recall_ids])

        losses = model.losses(ids[:, :-1], ids[:, 1:], dtype)
        weight = RECALL_WEIGHT + (ANSWER_WEIGHT - RECALL_WEIGHT) * answer.float()
        text_loss, recall_losses = losses[:text_rows].sum(), losses[text_rows:]
        loss = (text_loss + (recall_losses * weight).sum()) / (rows * length)
        loss.backward()
        optimizer.step(learning_rate(progress, options.decay))
        with torch.no_grad():
            count = answer.sum().clamp(min=1)
            window.append(torch.stack([text_loss / (text_rows * length), (recall_losses * answer).sum() / count,
                                       recall_losses.mean()]).detach())
        step += 1
        tokens += rows * length
        if step % 50 == 0 or step in (1, 10, 20):
            values = torch.stack(window).mean(0).tolist()
            window = []
            now = time.monotonic()
            note(step=step, tokens=tokens, seconds=round(now - begin, 1), length=length, progress=round(progress, 4),
                 text_loss=round(values[0], 4), answer_loss=round(values[1], 4), recall_loss=round(values[2], 4),
                 tokens_per_second=round((tokens - last_tokens) / (now - last_time)), waited=round(waited, 2))
            last_time, last_tokens, waited = now, tokens, 0.0
        if progress > 0.75 and not saved_middle and not options.from_progress and not options.only_length:
            save_shards(model, options.out)
            saved_middle = True
    stream.close()
    if device == "cuda":
        torch.cuda.synchronize()
        note(event="memory", peak_bytes=torch.cuda.max_memory_allocated())
    save_shards(model, options.out)
    save_shards(model, options.out, torch.float32, 15 << 20, "master")
    if options.compile_cache and not os.path.exists(options.compile_cache):
        artifacts = torch.compiler.save_cache_artifacts()
        if artifacts:
            with open(options.compile_cache, "wb") as file:
                file.write(artifacts[0])
    note(event="end", steps=step, tokens=tokens, seconds=round(time.monotonic() - begin, 1))


if __name__ == "__main__":
    main()
