#!/usr/bin/env python3
"""Seeded synthetic documents in which facts must be recalled at a distance.

    recall_documents.py --seed 1 --documents 50 --tokens 1024 [--facts 16] [--questions 8]
                        [--tokenizer tokenizer.model] [--filler DIR] [--out FILE.jsonl]

A document is plain English-like text: facts ("Marta Quill lives in Amber Ferry."), filler, and questions that are
followed by their answers ("Where does Marta Quill live? Marta Quill lives in Amber Ferry."). A model that kept the fact
predicts the answer. Subjects and values are drawn from spaces of thousands of combinations, so an answer cannot be
guessed without the fact, and several facts of a document share first names, surnames and kinds of value, so it cannot be
guessed from half of the key either.

Two forms:
  training_segments    facts and questions interleaved all the way, many answers a document, any length
  evaluation_document  facts over the first part, the questions at the end, with known answer positions

The generator has its own random numbers (SplitMix64), so a seed means the same text on every Python. Lengths are counted
by a function that the caller gives: tokens of a sentencepiece vocabulary where one is at hand, an estimate otherwise.
Filler is either generated or lines of real text. Only the standard library is needed, sentencepiece only for --tokenizer.
"""

import argparse
import json
import os
import sys

# The words and the texts that facts are stated and asked in; datasets/recall/ makes the same documents of the same file.
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "recall", "words.json"), encoding="utf-8") as _stream:
    WORDS = json.load(_stream)

# Each relation: the kind of its subject, the kind of its value, ways to state it, ways to ask for it. Every text ends in
# the value and a full stop, so that an answer is always the last thing before one.
RELATIONS = WORDS["relations"]
RELATION_NAMES = sorted(RELATIONS)


class Random:
    """SplitMix64: the same numbers everywhere, whatever the standard library does."""

    def __init__(self, seed):
        self.state = seed & 0xFFFFFFFFFFFFFFFF

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        return z ^ (z >> 31)

    def below(self, n):
        return (self.next() * n) >> 64

    def unit(self):
        return (self.next() >> 11) / (1 << 53)

    def choice(self, items):
        return items[self.below(len(items))]

    def shuffle(self, items):
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]


def draw(rng, kind):
    if kind == "person":
        return rng.choice(WORDS["first_names"]) + " " + rng.choice(WORDS["last_names"])
    if kind == "place":
        return rng.choice(WORDS["place_heads"]) + " " + rng.choice(WORDS["place_tails"])
    if kind == "code":
        return rng.choice(WORDS["code_words"]) + " " + rng.choice(WORDS["code_words"]) + " " + str(10 + rng.below(90))
    if kind == "trade":
        return rng.choice(WORDS["materials"]) + " " + rng.choice(WORDS["trades"])
    if kind == "object":
        return rng.choice(WORDS["qualities"]) + " " + rng.choice(WORDS["things"])
    return rng.choice(WORDS["qualities"]).capitalize() + " " + rng.choice(WORDS["beasts"])  # a ship


# How many values each kind has: what a guess without the document is worth.
VALUE_COUNTS = {
    "person": len(WORDS["first_names"]) * len(WORDS["last_names"]),
    "place": len(WORDS["place_heads"]) * len(WORDS["place_tails"]),
    "code": len(WORDS["code_words"]) ** 2 * 90,
    "trade": len(WORDS["materials"]) * len(WORDS["trades"]),
}


class Fact:
    __slots__ = ("relation", "subject", "value")

    def __init__(self, relation, subject, value):
        self.relation, self.subject, self.value = relation, subject, value


def new_fact(rng, known, relations=RELATION_NAMES):
    """A fact whose (relation, subject) is new; now and then another relation of a subject that is already known."""
    while True:
        relation = rng.choice(relations)
        subject_kind, value_kind = RELATIONS[relation]["subject"], RELATIONS[relation]["value"]
        same_kind = [f.subject for f in known.values() if RELATIONS[f.relation]["subject"] == subject_kind]
        subject = rng.choice(same_kind) if same_kind and rng.unit() < 0.15 else draw(rng, subject_kind)
        if (relation, subject) not in known:
            fact = Fact(relation, subject, draw(rng, value_kind))
            known[relation, subject] = fact
            return fact


# A document is a list of (kind, text); texts are joined by single spaces, except that a "stop" closes the one before it.
# Kinds: filler, statement (up to its value), value, question (up to its value), answer (a value that was asked for), stop.

def statement_segments(rng, fact):
    text = rng.choice(RELATIONS[fact.relation]["statements"]).replace("{s}", fact.subject)
    return [("statement", text.replace(" {v}", "")), ("value", fact.value), ("stop", ".")]


def question_segments(rng, fact):
    text = rng.choice(RELATIONS[fact.relation]["questions"]).replace("{s}", fact.subject)
    return [("question", text.replace(" {v}", "")), ("answer", fact.value), ("stop", ".")]


def generated_sentence(rng):
    sentence = " ".join(rng.choice(WORDS[part]) for part in ("subjects", "verbs", "objects", "endings"))
    return sentence[0].upper() + sentence[1:] + "."


def filler_segment(rng, lines):
    """A line of real text mostly, where there is any, else a generated sentence."""
    if lines and rng.unit() < 0.8:
        return "filler", rng.choice(lines)
    return "filler", generated_sentence(rng)


def size_of(segments, count):
    """Tokens of some segments; a stop is one, without the space that `count` would see before it."""
    return sum(1 if kind == "stop" else count(text) for kind, text in segments)


def training_segments(rng, length, count, lines=None, most_facts=32, filler=0.4):
    """Segments of at least `length` by `count`: statements, questions about anything stated before, filler between.

    Questions are frequent and ask about old and new facts alike, so that every document carries many answers at distances
    from one sentence to its whole length.
    """
    known, facts, segments, total = {}, [], [], 0
    goal = 1 + rng.below(most_facts)
    while total < length:
        draw_kind = rng.unit()
        if not facts or (len(facts) < goal and draw_kind < 0.3):
            fact = new_fact(rng, known)
            facts.append(fact)
            added = statement_segments(rng, fact)
        elif draw_kind < 1.0 - filler:
            added = question_segments(rng, rng.choice(facts))
        else:
            added = [filler_segment(rng, lines)]
        segments += added
        total += size_of(added, count)
    return segments


def evaluation_document(rng, length, count, lines=None, facts=16, questions=8, relations=RELATION_NAMES):
    """Segments of at most `length`: `facts` statements spread evenly in filler, then `questions` at the end.

    The document is filled up to `length` with filler before the questions, so the distances grow with the length.
    """
    known = {}
    chosen = [new_fact(rng, known, relations) for _ in range(facts)]
    asked = list(chosen)
    rng.shuffle(asked)
    tail = [segment for fact in asked[:questions] for segment in question_segments(rng, fact)]
    statements = [statement_segments(rng, fact) for fact in chosen]
    room = length - size_of(tail, count) - sum(size_of(statement, count) for statement in statements)
    if room < 0:
        raise ValueError(f"{facts} facts and {questions} questions do not fit into {length} tokens")
    # Filler is gathered first and dealt out over the gaps, so that the length is met closely whatever the lines' lengths.
    fillers, misses = [], 0
    while misses < 40:  # generated sentences are short: they take the last of the room
        segment = filler_segment(rng, lines if misses < 20 else None)
        size = count(segment[1])
        if size <= room:
            fillers.append(segment)
            room -= size
            misses = 0
        else:
            misses += 1
    gaps = [[] for _ in range(facts + 1)]
    for segment in fillers:
        gaps[rng.below(facts + 1)].append(segment)
    segments = list(gaps[0])
    for statement, gap in zip(statements, gaps[1:]):
        segments += statement + gap
    return segments + tail


def join(segments):
    """The text of a document and, for every segment, its [start, end) in it."""
    text, spans = "", []
    for kind, part in segments:
        if text and kind != "stop":
            text += " "
        spans.append((len(text), len(text) + len(part)))
        text += part
    return text, spans


def encode(segments, encode_text, first=()):
    """Token ids and, for every segment, its [start, end) in them.

    `encode_text` must put a word's leading space into the word (sentencepiece with a dummy prefix does), then ids of the
    parts are the ids of the joined text. The full stop is taken from the ids of "a." because it has no space before it.
    """
    stop = encode_text("a.")[len(encode_text("a")):]
    ids, spans = list(first), []
    for kind, part in segments:
        start = len(ids)
        ids += stop if kind == "stop" else encode_text(part)
        spans.append((start, len(ids)))
    return ids, spans


def answers(segments, spans):
    """[(value span, span of the value where it was stated)] of every question."""
    stated, found = {}, []
    for (kind, text), span in zip(segments, spans):
        if kind == "value":
            stated[text] = span
        elif kind == "answer":
            found.append((span, stated[text]))
    return found


def estimate(text):
    """Tokens of a 4k vocabulary, roughly, where no tokenizer is at hand."""
    return 1 + len(text) * 10 // 34


def read_lines(folder, longest=300, shortest=40, most=20000):
    """Lines of real text that are whole sentences, in the order of the files."""
    lines = []
    for base, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            with open(os.path.join(base, name), encoding="utf-8") as stream:
                for line in stream.read().split("\n"):
                    if shortest <= len(line) <= longest and line[-1] in ".!?" and "  " not in line:
                        lines.append(line)
    step = max(1, len(lines) // most)
    return lines[::step]


def evaluation_records(seed, documents, tokens, facts, questions, encode_text=None, lines=None, first=()):
    """The evaluation set as JSON-able records."""
    count = (lambda text: len(encode_text(text))) if encode_text else estimate
    for index in range(documents):
        rng = Random(seed * 1000003 + index)
        segments = evaluation_document(rng, tokens - len(first), count, lines, facts, questions)
        text, spans = join(segments)
        record = {"id": f"recall-{seed}-{tokens}-{index}", "text": text,
                  "answers": [{"chars": list(a), "stated_chars": list(s), "value": text[a[0]:a[1]]}
                              for a, s in answers(segments, spans)]}
        if encode_text:
            ids, spans = encode(segments, encode_text, first)
            record["ids"] = ids
            for answer, (a, s) in zip(record["answers"], answers(segments, spans)):
                answer["tokens"], answer["distance"] = list(a), a[0] - s[0]
        yield record


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--documents", type=int, default=50)
    parser.add_argument("--tokens", type=int, default=1024, help="length of a document")
    parser.add_argument("--facts", type=int, default=16)
    parser.add_argument("--questions", type=int, default=8)
    parser.add_argument("--tokenizer", metavar="FILE", help="a sentencepiece model: exact lengths and token positions")
    parser.add_argument("--filler", metavar="DIR", help="text files whose lines are the filler (default: generated)")
    parser.add_argument("--out", default="-", metavar="FILE")
    options = parser.parse_args(arguments)
    encode_text, first = None, ()
    try:
        if options.tokenizer:
            import sentencepiece
            processor = sentencepiece.SentencePieceProcessor(model_file=options.tokenizer)
            encode_text = processor.encode
            first = (processor.bos_id(),) if processor.bos_id() >= 0 else ()
        lines = read_lines(options.filler) if options.filler else None
        if options.questions > options.facts:
            raise ValueError(f"{options.questions} questions need as many facts, there are {options.facts}")
        records = list(evaluation_records(options.seed, options.documents, options.tokens, options.facts,
                                          options.questions, encode_text, lines, first))
        text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        if options.out == "-":
            sys.stdout.write(text)
        else:
            with open(options.out + ".new", "w", encoding="utf-8") as stream:
                stream.write(text)
            os.rename(options.out + ".new", options.out)
    except (ImportError, OSError, ValueError) as error:
        print(f"recall_documents.py: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
