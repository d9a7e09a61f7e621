#!/usr/bin/env python3
"""datasets/recall_documents.py: seeds, lengths, answers and their places. Standard library only."""

import contextlib
import hashlib
import io
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "datasets"))
import recall_documents as recall  # noqa: E402

VOCABULARY = {}


def encode_words(text):
    """A stand-in for a tokenizer: one id a word, its last full stop apart, as sentencepiece would have it."""
    ids = []
    for word in text.split(" "):
        parts = [word[:-1], "."] if word.endswith(".") else [word]
        ids += [VOCABULARY.setdefault(part, len(VOCABULARY) + 1) for part in parts]
    return ids


class RandomNumbers(unittest.TestCase):
    def test_published_splitmix64_values(self):
        rng = recall.Random(1234567)
        self.assertEqual([rng.next() for _ in range(3)],
                         [6457827717110365317, 3203168211198807973, 9817491932198370423])

    def test_below_stays_below(self):
        rng = recall.Random(5)
        self.assertEqual({rng.below(3) for _ in range(100)}, {0, 1, 2})


class EvaluationDocuments(unittest.TestCase):
    def records(self, seed=3, documents=4, tokens=512, facts=16, questions=8, **more):
        return list(recall.evaluation_records(seed, documents, tokens, facts, questions, encode_words, **more))

    def test_seed_decides(self):
        self.assertEqual(self.records(), self.records())
        self.assertNotEqual(self.records()[0]["text"], self.records(seed=4)[0]["text"])

    def test_text_of_a_seed_is_fixed(self):
        # Scores are compared across machines: a changed generator must be a decision, not an accident.
        text = "\n".join(record["text"] for record in recall.evaluation_records(1, 3, 300, 6, 4))
        self.assertEqual(hashlib.sha256(text.encode()).hexdigest(), "51b2a73ff901b0a1e8797ead0e325bbe5c3b6b5dd0d617b1ecd6a743272b997c")

    def test_lengths(self):
        for tokens in (512, 1024, 8192):
            for record in self.records(tokens=tokens, documents=2, first=(0,)):
                self.assertLessEqual(len(record["ids"]), tokens)
                self.assertGreater(len(record["ids"]), tokens - 24)

    def test_answers_lie_where_they_are_said_to(self):
        for record in self.records(first=(0,)):
            self.assertEqual(len(record["answers"]), 8)
            for answer in record["answers"]:
                start, end = answer["chars"]
                self.assertEqual(record["text"][start:end], answer["value"])
                self.assertEqual(record["text"][end], ".")
                start, end = answer["stated_chars"]
                self.assertEqual(record["text"][start:end], answer["value"])
                self.assertLess(end, answer["chars"][0])
                start, end = answer["tokens"]
                self.assertEqual(record["ids"][start:end], encode_words(answer["value"]))
                self.assertEqual(record["ids"][start - answer["distance"]:end - answer["distance"]],
                                 encode_words(answer["value"]))

    def test_ids_of_parts_are_ids_of_the_text(self):
        for record in self.records():
            self.assertEqual(record["ids"], encode_words(record["text"]))

    def test_questions_are_at_the_end(self):
        for record in self.records(tokens=2048):
            self.assertGreater(min(answer["tokens"][0] for answer in record["answers"]), 1700)

    def test_filler_is_used(self):
        lines = ["This line is filler and nothing else."]
        self.assertIn(lines[0], self.records(lines=lines)[0]["text"])

    def test_too_many_facts(self):
        with self.assertRaisesRegex(ValueError, "do not fit into 100 tokens"):
            self.records(tokens=100)

    def test_values_cannot_be_guessed(self):
        self.assertGreater(min(recall.VALUE_COUNTS.values()), 1000)


class TrainingDocuments(unittest.TestCase):
    def test_every_answer_was_stated_before(self):
        for seed in range(20):
            segments = recall.training_segments(recall.Random(seed), 800, lambda text: len(encode_words(text)))
            stated, asked = set(), 0
            for kind, text in segments:
                if kind == "value":
                    stated.add(text)
                elif kind == "answer":
                    self.assertIn(text, stated)
                    asked += 1
            self.assertGreater(asked, 5)
            ids, spans = recall.encode(segments, encode_words, (0,))
            self.assertGreaterEqual(len(ids), 800)
            self.assertEqual(spans[-1][1], len(ids))


class CommandLine(unittest.TestCase):
    def call(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = recall.main(list(arguments))
        return code, out.getvalue(), err.getvalue()

    def test_prints_json_lines(self):
        code, out, _ = self.call("--documents", "3", "--tokens", "400", "--facts", "4", "--questions", "2")
        self.assertEqual(code, 0)
        self.assertEqual([len(json.loads(line)["answers"]) for line in out.splitlines()], [2, 2, 2])

    def test_refuses_more_questions_than_facts(self):
        code, out, err = self.call("--facts", "2", "--questions", "3")
        self.assertEqual((code, out, err.count("\n")), (3, "", 1))

    def test_failure_leaves_no_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.jsonl")
            self.assertEqual(self.call("--tokens", "50", "--out", path)[0], 3)
            self.assertEqual(os.listdir(folder), [])


if __name__ == "__main__":
    unittest.main()
