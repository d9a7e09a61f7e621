#!/usr/bin/env python3
"""Make downstream tasks of the held-out documents that prepare_text.py wrote, as plain JSONL (configs/tasks.md).

    heldout_tasks.py [--text DIR] [--out DIR]

    definition.jsonl    multiple choice: which of four definitions is that of a WordNet entry
    sentence_end.jsonl  multiple choice: which of four second halves ends a sentence, after a passage of some 300 words
    last_word.jsonl     the last word of a passage of some 400 words, one that the passage has used before

Wrong choices are taken from the same collection, so a task cannot be solved by its style. The same text gives the same
bytes on every machine: what is drawn comes from SHA-256, not from a library's generator, and configs may pin the files.

Exit codes: 0 fine, 2 usage, 3 a document is missing or makes no task (one line on stderr).
"""

import argparse
import hashlib
import json
import os
import re
import sys

CHOICES = 4
# Documents of a task: enough for a paired difference of one point to be seen, few enough for minutes on a GPU.
DEFINITIONS, SENTENCES, WORDS = 1500, 600, 600


class TaskError(Exception):
    """A document is missing or too short; the message is one line."""


def drawn(key, below):
    """A number from 0 to below - 1 that depends on `key` alone."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") % below


def sample(key, items, count):
    """`count` of `items`, in their own order; all where there are no more."""
    chosen = sorted(range(len(items)), key=lambda i: hashlib.sha256(f"{key} {i}".encode()).digest())[:count]
    return [items[i] for i in sorted(chosen)]


def documents(folder, collection):
    """[(name, lines)] of one collection, in order of their names."""
    where = os.path.join(folder, collection)
    if not os.path.isdir(where):
        raise TaskError(f"{where}: expected held-out documents there; datasets/prepare_text.py writes them")
    names = sorted(name for name in os.listdir(where) if name.endswith(".txt"))
    found = []
    for name in names:
        with open(os.path.join(where, name), encoding="utf-8") as file:
            found.append((name, file.read().splitlines()))
    return found


def question(key, context, right, wrong):
    """A multiple-choice row whose right answer stands at a drawn place among the wrong ones."""
    answer = drawn(key + " place", CHOICES)
    return {"context": context, "choices": wrong[:answer] + [right] + wrong[answer:], "answer": answer}


def others(key, pool, right):
    """Three texts of `pool`, none of them `right` and none twice."""
    chosen, turn = [], 0
    while len(chosen) < CHOICES - 1:
        text = pool[drawn(f"{key} {turn}", len(pool))]
        turn += 1
        if text != right and text not in chosen:
            chosen.append(text)
        if turn > 1000:
            raise TaskError(f"{key}: expected three other choices, found {len(chosen)}")
    return chosen


def definitions(text):
    """Which definition is that of an entry, among those of the same document: `words: definition` lines."""
    rows = []
    for name, lines in documents(text, "wordnet"):
        entries = [line.split(": ", 1) for line in lines if ": " in line]
        pool = [definition for _, definition in entries]
        for i, (words, right) in enumerate(entries):
            key = f"definition {name} {i}"
            # An entry's neighbours often are its kin; three lines before it say what an entry looks like.
            shown = "\n".join(": ".join(entry) for entry in entries[max(0, i - 3):i])
            context = (shown + "\n" if shown else "") + words + ":"
            wrong = others(key, pool, right)
            rows.append(question(key, context, " " + right, [" " + other for other in wrong]))
    return sample("definition", rows, DEFINITIONS)


SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[A-Z])")


def sentences_of(lines):
    """Sentences of the paragraphs that are long enough to be prose."""
    return [sentence for line in lines if len(line) > 200 for sentence in SENTENCE_END.split(line)]


def passages(lines, words):
    """(passage, next sentence) for every sentence with about `words` words of the document before it."""
    sentences = sentences_of(lines)
    for i, sentence in enumerate(sentences):
        count, start = 0, i
        while start > 0 and count < words:
            start -= 1
            count += len(sentences[start].split(" "))
        if count >= words:
            yield " ".join(sentences[start:i]), sentence


def halves(sentence):
    """A sentence of ordinary length as (beginning, end), of as many words each; None of another."""
    words = sentence.split(" ")
    return (" ".join(words[:len(words) // 2]), " ".join(words[len(words) // 2:])) if 12 <= len(words) <= 40 else None


def sentence_ends(text):
    """Which second half ends a sentence, among those of other sentences of the same document."""
    rows = []
    for name, lines in documents(text, "anarchism"):
        pool = [pair[1] for pair in map(halves, sentences_of(lines)) if pair]
        for i, (passage, sentence) in enumerate(passages(lines, 300)):
            pair = halves(sentence)
            if pair:
                key = f"sentence_end {name} {i}"
                wrong = [" " + other for other in others(key, pool, pair[1])]
                rows.append(question(key, f"{passage} {pair[0]}", " " + pair[1], wrong))
    return sample("sentence_end", rows, SENTENCES)


LAST_WORD = re.compile(r"^(.* )([a-z]{5,})([.!?])$")


def last_words(text):
    """The last word of a sentence, where the passage before it has the word already: what a state must remember."""
    rows = []
    for _, lines in documents(text, "anarchism"):
        for passage, sentence in passages(lines, 400):
            found = LAST_WORD.match(sentence)
            if found and f" {found[2]} " in passage:
                rows.append({"context": f"{passage} {found[1]}".rstrip(" "), "target": " " + found[2]})
    return sample("last_word", rows, WORDS)


TASKS = {"definition": (definitions, DEFINITIONS),
         "sentence_end": (sentence_ends, SENTENCES),
         "last_word": (last_words, WORDS)}


def write(path, rows):
    """All rows or none: a stopped command leaves no half a task behind."""
    partial = path + ".partial"
    with open(partial, "w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    os.replace(partial, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--text", default=".data/text/heldout", help="the held-out documents (default: %(default)s)")
    parser.add_argument("--out", default=".data/tasks", help="where the tasks go (default: %(default)s)")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    for name, (make, count) in TASKS.items():
        rows = make(options.text)
        if len(rows) < count:
            raise TaskError(f"{options.text}: expected text for {count} documents of {name}, found {len(rows)}")
        path = os.path.join(options.out, f"{name}.jsonl")
        write(path, rows)
        with open(path, "rb") as file:
            print(f"{hashlib.sha256(file.read()).hexdigest()}  {path}  ({len(rows)} documents)")


if __name__ == "__main__":
    try:
        main()
    except (TaskError, OSError) as error:
        print(f"heldout_tasks.py: {error}", file=sys.stderr)
        sys.exit(3)
