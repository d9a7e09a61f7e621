#!/usr/bin/env python3
"""Train the sentencepiece vocabulary on the prepared training text.

    train_tokenizer.py [--text .data/text/train] [--out checkpoints/tiny-nemotron-h/tokenizer.model] [--vocab-size 4096]

Identity normalisation and byte fallback: what is decoded is what was encoded, for any text. Digits are split, so that a
number costs as many tokens as it has digits and none of them has to be memorised. One thread and a fixed choice of
lines, so that the same text gives the same vocabulary.
"""

import argparse
import io
import os

import sentencepiece


def lines_of(folder, every, longest=2000):
    """Every n-th line of every document; the trainer skips lines that are too long, so they are cut at spaces."""
    number = 0
    for base, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            with open(os.path.join(base, name), encoding="utf-8") as stream:
                for line in stream.read().split("\n"):
                    number += 1
                    if number % every or not line:
                        continue
                    while len(line) > longest:
                        cut = line.rfind(" ", 1, longest)
                        cut = cut if cut > 0 else longest
                        yield line[:cut]
                        line = line[cut:].lstrip(" ")
                    yield line


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--text", default=".data/text/train")
    parser.add_argument("--out", default="checkpoints/tiny-nemotron-h/tokenizer.model")
    parser.add_argument("--vocab-size", type=int, default=4096)
    parser.add_argument("--every", type=int, default=3, help="use every n-th line")
    options = parser.parse_args()

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines_of(options.text, options.every),
        model_writer=model,
        model_type="unigram",
        vocab_size=options.vocab_size,
        character_coverage=0.9995,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        split_digits=True,
        num_threads=1,
        shuffle_input_sentence=False,
        input_sentence_size=0,
        unk_id=0, bos_id=1, eos_id=2, pad_id=-1,
        minloglevel=1,
    )
    with open(options.out, "wb") as stream:
        stream.write(model.getvalue())


if __name__ == "__main__":
    main()
