#!/usr/bin/env python3
"""Encode the prepared text once: .data/text/<split>/<source>/<document>.txt -> .data/tokens/.

Writes train.npz (all documents, each <s> … </s>, one uint16 array, and where each begins), heldout.npz (one array a
document, without <s> and </s>) and filler.txt.gz / heldout_filler.txt.gz (lines of text for the recall documents).
Compressed, because the folder is what travels to the machine that trains.
"""

import argparse
import gzip
import json
import os
import sys

import numpy as np
import sentencepiece

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "datasets"))
import recall_documents  # noqa: E402


def documents(folder):
    for source in sorted(os.listdir(folder)):
        for name in sorted(os.listdir(os.path.join(folder, source))):
            with open(os.path.join(folder, source, name), encoding="utf-8") as stream:
                yield f"{source}/{name[:-4]}", stream.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--text", default=".data/text")
    parser.add_argument("--tokenizer", default="checkpoints/tiny-nemotron-h/tokenizer.model")
    parser.add_argument("--out", default=".data/tokens")
    options = parser.parse_args()
    processor = sentencepiece.SentencePieceProcessor(model_file=options.tokenizer)
    os.makedirs(options.out, exist_ok=True)

    parts, starts, total, by_source = [], [], 0, {}
    for name, text in documents(os.path.join(options.text, "train")):
        ids = [processor.bos_id()] + processor.encode(text) + [processor.eos_id()]
        starts.append(total)
        total += len(ids)
        parts.append(np.array(ids, dtype=np.uint16))
        source = name.split("/")[0]
        by_source[source] = by_source.get(source, 0) + len(ids)
    np.savez_compressed(os.path.join(options.out, "train.npz"), ids=np.concatenate(parts), starts=np.array(starts))

    heldout = {name: np.array(processor.encode(text), dtype=np.uint16)
               for name, text in documents(os.path.join(options.text, "heldout"))}
    np.savez_compressed(os.path.join(options.out, "heldout.npz"), **heldout)

    for split, file in (("train", "filler.txt.gz"), ("heldout", "heldout_filler.txt.gz")):
        lines = recall_documents.read_lines(os.path.join(options.text, split))
        with gzip.GzipFile(os.path.join(options.out, file), "wb", mtime=0) as stream:
            stream.write("\n".join(lines).encode())
    print(json.dumps({"train_tokens": total, "train_tokens_by_source": by_source,
                      "heldout_tokens": int(sum(len(ids) for ids in heldout.values()))}))


if __name__ == "__main__":
    main()
