#!/usr/bin/env python3
"""Write tokenizer.json beside a sentencepiece model, so that AutoTokenizer reads the same vocabulary without guessing.

    export_tokenizer.py checkpoints/tiny-nemotron-h

A unigram sentencepiece model read as if it were the more common BPE kind gives other tokens without any complaint;
tokenizer.json says which it is. Before the file is written both are compared: on the lines of every held-out document, on
awkward strings, and on the text that decoding gives back. They agree on every string, with two exceptions that are meant: the
JSON reads the spelling of a control token ("<s>") as that token, as every tokenizer of transformers does, and of two
segmentations with the same pieces (f ff, ff f), which have the same score, either may win: float32 sums, which
sentencepiece takes, and float64 sums round differently.
"""

import argparse
import os

import sentencepiece
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, processors


# sentencepiece never matches the spelling of a byte piece; tokenizers would, were it not the worst of all choices.
NEVER = -1e6
AWKWARD = ["", " ", "  ", " Paris", "   three", "a  b   c ", "\n", "\n\n x", "\t a", "\x00a", "\u2581", "a\u2581b", " \u2581 ",
           "<0x41>", "x<0x0A>y", "<", "< s>", "日本 語🙂", " 🙂", "e\u0301", "\u3000x", "1234 56", "Gemüse", "\r\n", "\u2028"]


def convert(processor):
    vocab = [(processor.id_to_piece(i), NEVER if processor.is_byte(i) else processor.get_score(i))
             for i in range(processor.vocab_size())]
    tokenizer = Tokenizer(models.Unigram(vocab, unk_id=processor.unk_id(), byte_fallback=True))
    # One space before any text that is not empty, also before one that begins with a space: a pre-tokenizer (Metaspace)
    # would leave that one alone.
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence([
        decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    bos, eos, unk = (processor.id_to_piece(i) for i in (processor.bos_id(), processor.eos_id(), processor.unk_id()))
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in (unk, bos, eos)])
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{bos} $A", pair=f"{bos} $A {bos} $B",
                                                             special_tokens=[(bos, processor.bos_id())])
    return tokenizer


def compare(text, processor, tokenizer, place):
    """The number of tokens, if both encoders give the same and decoding gives the text back."""
    ours, theirs = tokenizer.encode(text, add_special_tokens=False).ids, processor.encode(text)
    if sorted(ours) != sorted(theirs):
        raise SystemExit(f"{place}: {text!r} is encoded otherwise: {ours}, by sentencepiece {theirs}")
    if tokenizer.decode(ours) != text.replace("\u2581", " "):
        raise SystemExit(f"{place}: {text!r} is decoded as {tokenizer.decode(ours)!r}")
    return len(theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkpoint")
    parser.add_argument("--text", default=".data/text/heldout", help="documents to compare both encoders on")
    options = parser.parse_args()
    processor = sentencepiece.SentencePieceProcessor(model_file=os.path.join(options.checkpoint, "tokenizer.model"))
    tokenizer = convert(processor)
    for text in AWKWARD:
        compare(text, processor, tokenizer, "awkward strings")
    documents = tokens = 0
    for base, _, names in sorted(os.walk(options.text)):
        for name in sorted(names):
            with open(os.path.join(base, name), encoding="utf-8") as stream:
                text = stream.read()
            place = os.path.join(base, name)
            tokens += sum(compare(line, processor, tokenizer, place) for line in text.split("\n"))
            if tokenizer.decode(tokenizer.encode(text, add_special_tokens=False).ids) != text:
                raise SystemExit(f"{place}: decoding does not give the text back")
            documents += 1
    print(f"{documents} documents, {tokens} tokens and {len(AWKWARD)} awkward strings: alike")
    tokenizer.save(os.path.join(options.checkpoint, "tokenizer.json"))


if __name__ == "__main__":
    main()
