#!/usr/bin/env python3
"""Write tokenizer.json beside a sentencepiece model, so that AutoTokenizer reads the same vocabulary without guessing.

    export_tokenizer.py checkpoints/tiny-nemotron-h

A unigram sentencepiece model read as if it were the more common BPE kind gives other tokens without any complaint;
tokenizer.json says which it is. Every held-out document is encoded both ways as a check before the file is written; the two may only differ where two
segmentations have the same score. Scores of this project are always taken with the sentencepiece model.
"""

import argparse
import os

import sentencepiece
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors


def convert(processor):
    vocab = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(processor.vocab_size())]
    tokenizer = Tokenizer(models.Unigram(vocab, unk_id=processor.unk_id(), byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="first", split=True)
    tokenizer.decoder = decoders.Sequence([
        decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    bos, eos, unk = (processor.id_to_piece(i) for i in (processor.bos_id(), processor.eos_id(), processor.unk_id()))
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in (unk, bos, eos)])
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{bos} $A", pair=f"{bos} $A {bos} $B",
                                                             special_tokens=[(bos, processor.bos_id())])
    return tokenizer


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkpoint")
    parser.add_argument("--text", default=".data/text/heldout", help="documents to compare both encoders on")
    options = parser.parse_args()
    processor = sentencepiece.SentencePieceProcessor(model_file=os.path.join(options.checkpoint, "tokenizer.model"))
    tokenizer = convert(processor)
    score = lambda ids: sum(processor.get_score(i) for i in ids)  # noqa: E731
    documents = tokens = ties = 0
    for base, _, names in sorted(os.walk(options.text)):
        for name in sorted(names):
            with open(os.path.join(base, name), encoding="utf-8") as stream:
                text = stream.read()
            for line in text.split("\n"):
                ours, theirs = tokenizer.encode(line, add_special_tokens=False).ids, processor.encode(line)
                tokens += len(theirs)
                if ours != theirs:
                    # Two segmentations of exactly one score: float32 and float64 sums pick different ones.
                    if abs(score(ours) - score(theirs)) > 1e-3:
                        raise SystemExit(f"{base}/{name}: {line!r} is encoded otherwise")
                    ties += 1
            if tokenizer.decode(tokenizer.encode(text, add_special_tokens=False).ids) != text:
                raise SystemExit(f"{base}/{name}: decoding does not give the text back")
            documents += 1
    print(f"{documents} documents, {tokens} tokens: alike but for {ties} lines with a tie between two segmentations")
    tokenizer.save(os.path.join(options.checkpoint, "tokenizer.json"))


if __name__ == "__main__":
    main()
