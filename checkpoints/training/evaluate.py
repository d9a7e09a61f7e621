#!/usr/bin/env python3
"""Score a checkpoint: held-out perplexity by source, recall by length, beside the 5-gram baseline.

    evaluate.py --checkpoint checkpoints/tiny-nemotron-h [--transformers] [--ngram FILE] [--out FILE]

All in float32 with the stored bfloat16 weights. Perplexity: every held-out document is cut into windows of 2047 tokens
(the last one shorter), each is scored after one <s> from an empty state; every token is scored once, <s> is not.
Recall: evaluation documents of datasets/recall_documents.py with lines of held-out text as filler; an answer counts if
every token of the value is the most likely one after the tokens before it.
"""

import argparse
import gzip
import json
import math
import os
import sys

import numpy as np
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "datasets"))
import recall_documents as recall  # noqa: E402
from model import Hybrid, read_config  # noqa: E402
from shards import load_shards  # noqa: E402

WINDOW = 2048


def windows(heldout, bos):
    for name, ids in heldout.items():
        for begin in range(0, len(ids), WINDOW - 1):
            yield name, [bos] + ids[begin:begin + WINDOW - 1].tolist()


def padded(sequences, device):
    ids = np.zeros((len(sequences), max(map(len, sequences))), dtype=np.int64)
    for row, sequence in enumerate(sequences):
        ids[row, :len(sequence)] = sequence
    return torch.from_numpy(ids).to(device)


def perplexity(logits_of, heldout, bos, device, batch):
    items = list(windows(heldout, bos))
    sums = {}
    for at in range(0, len(items), batch):
        group = items[at:at + batch]
        ids = padded([sequence for _, sequence in group], device)
        losses = torch.nn.functional.cross_entropy(logits_of(ids)[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none")
        for (name, sequence), row in zip(group, losses.double()):
            for key in (name.split("/")[0], "all"):
                loss, count = sums.get(key, (0.0, 0))
                sums[key] = loss + row[:len(sequence) - 1].sum().item(), count + len(sequence) - 1
    return ({key: math.exp(loss / count) for key, (loss, count) in sorted(sums.items())},
            {key: count for key, (_, count) in sorted(sums.items())})


def recall_accuracy(logits_of, processor, lines, device, length, documents, facts, seed):
    records = list(recall.evaluation_records(seed, documents, length, facts, min(8, facts), processor.encode, lines,
                                             (processor.bos_id(),)))
    right, first_right, total, by_distance, lengths = 0, 0, 0, {}, []
    batch = max(1, 65536 // length) if device == "cuda" else 1
    for at in range(0, len(records), batch):
        group = records[at:at + batch]
        ids = padded([record["ids"] for record in group], device)
        best = logits_of(ids).argmax(-1)
        for row, record in enumerate(group):
            lengths.append(len(record["ids"]))
            for answer in record["answers"]:
                start, end = answer["tokens"]
                hits = best[row, start - 1:end - 1] == ids[row, start:end]
                hit = bool(hits.all())
                right, first_right, total = right + hit, first_right + bool(hits[0]), total + 1
                bucket = 1 << (answer["distance"].bit_length() - 1)
                good, seen = by_distance.get(bucket, (0, 0))
                by_distance[bucket] = good + hit, seen + 1
    return {"tokens": length, "mean_tokens": round(float(np.mean(lengths)), 1), "documents": documents, "facts": facts,
            "questions": total, "accuracy": right / total, "first_token_accuracy": first_right / total, "seed": seed,
            "accuracy_by_distance": {f"{k}-{2 * k - 1}": [good / seen, seen]
                                     for k, (good, seen) in sorted(by_distance.items())}}


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--config", help="default: config.json in the checkpoint")
    parser.add_argument("--tokenizer", help="default: tokenizer.model in the checkpoint")
    parser.add_argument("--tokens", default=".data/tokens")
    parser.add_argument("--transformers", action="store_true", help="also score with transformers' own implementation")
    parser.add_argument("--ngram", help="result file of ngram.py to put beside")
    parser.add_argument("--recall-documents", type=int, default=64)
    parser.add_argument("--recall-lengths", default="1024,2048,4096,8192")
    parser.add_argument("--out", help="file for the scores, written again after each of them")
    return parser.parse_args()


def score_transformers(checkpoint, model, heldout, bos, device):
    """Perplexity of transformers' implementation, and how far our logits are from its, as a share of their range."""
    from transformers import AutoModelForCausalLM
    other = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32).to(device).eval()
    values, _ = perplexity(lambda ids: other(ids, use_cache=False).logits, heldout, bos, device, 4 if device == "cuda" else 1)
    some = padded([next(windows(heldout, bos))[1]], device)[:, :1024]
    ours, theirs = model.logits(some), other(some, use_cache=False).logits
    return values, ((ours - theirs).abs().max() / (theirs.max() - theirs.min())).item()


def score_recall(model, processor, options, device, recall_scores, save):
    with gzip.open(os.path.join(options.tokens, "heldout_filler.txt.gz"), "rt", encoding="utf-8") as stream:
        lines = stream.read().split("\n")
    for length in map(int, options.recall_lengths.split(",")):
        for key, facts in (("lengths", 16), ("dense", length // 64)):
            score = recall_accuracy(model.logits, processor, lines, device, length, options.recall_documents, facts, 77)
            recall_scores[key].append(score)
            print("recall", key, score, flush=True)
            save()


def main():
    options = parse_options()
    import sentencepiece
    processor = sentencepiece.SentencePieceProcessor(
        model_file=options.tokenizer or os.path.join(options.checkpoint, "tokenizer.model"))
    config = read_config(options.config or os.path.join(options.checkpoint, "config.json"))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("highest")
    model = load_shards(Hybrid(config), options.checkpoint).to(device)
    heldout = dict(np.load(os.path.join(options.tokens, "heldout.npz")))
    result = {"windows": f"documents cut into windows of {WINDOW - 1} tokens, each after one <s> from an empty state",
              "weights": "bfloat16 as stored, computed in float32"}

    def save():
        if options.out:
            with open(options.out, "w", encoding="utf-8") as stream:
                stream.write(json.dumps(result, indent=2) + "\n")

    with torch.no_grad():
        result["perplexity"], result["heldout_tokens"] = perplexity(model.logits, heldout, config.bos_token_id, device,
                                                                    16 if device == "cuda" else 1)
        print("perplexity", result["perplexity"], flush=True)
        if options.transformers:
            result["perplexity_transformers"], result["transformers_logit_difference_of_range"] = score_transformers(
                options.checkpoint, model, heldout, config.bos_token_id, device)
            print("transformers", result["perplexity_transformers"], result["transformers_logit_difference_of_range"],
                  flush=True)
        if options.ngram:
            with open(options.ngram, encoding="utf-8") as stream:
                result["ngram"] = json.load(stream)
        save()
        result["recall"] = {
            "rule": "16 facts a document, 8 questions at its end; exact match of the value's tokens, teacher-forced argmax",
            "chance": {"value_space_smallest": min(recall.VALUE_COUNTS.values()),
                       "picking_one_of_the_documents_values": 1 / 16},
            "lengths": [], "dense": []}
        score_recall(model, processor, options, device, result["recall"], save)


if __name__ == "__main__":
    main()
