#!/usr/bin/env python3
"""datasets/heldout_tasks.py: rows, wrong choices, the same bytes every time, refusals. Standard library only."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "datasets"))
import heldout_tasks as tasks  # noqa: E402


def sentence(i):
    """Eighteen words, the last of which ten sentences before it have, too."""
    last = "harbour" + "abcdefghij"[i % 10]
    return f"Number {i} says " + " ".join(f"w{i}x{j}" for j in range(11)) + f" of {last} and {last}."


def write_text(folder):
    """Held-out documents in small: two files of definitions, one of prose."""
    for collection in ("wordnet", "anarchism"):
        os.makedirs(os.path.join(folder, collection))
    for name, letter in (("a.txt", "a"), ("b.txt", "b")):
        with open(os.path.join(folder, "wordnet", name), "w", encoding="utf-8") as file:
            file.write("".join(f"{letter}word{i}: what {letter} {i} means\n" for i in range(20)))
    with open(os.path.join(folder, "anarchism", "p.txt"), "w", encoding="utf-8") as file:
        sentences = [sentence(i) for i in range(90)]
        file.write("".join(" ".join(sentences[i:i + 10]) + "\n" for i in range(0, 90, 10)))


class HeldoutTasks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.text = os.path.join(folder.name, "text")
        self.out = os.path.join(folder.name, "tasks")
        write_text(self.text)

    def run_main(self):
        arguments = ["heldout_tasks.py", "--text", self.text, "--out", self.out]
        small = {name: (make, 10) for name, (make, _) in tasks.TASKS.items()}
        with mock.patch.object(sys, "argv", arguments), mock.patch.object(tasks, "TASKS", small), \
                contextlib.redirect_stdout(io.StringIO()) as printed:
            tasks.main()
        return printed.getvalue()

    def test_definitions_have_their_own_answer_among_others_of_the_document(self):
        rows = tasks.definitions(self.text)
        self.assertEqual(len(rows), 40)
        for row in rows:
            word = row["context"].splitlines()[-1].rstrip(":")
            right = row["choices"][row["answer"]]
            self.assertEqual(right, f" what {word[0]} {word[5:]} means")
            self.assertEqual(len(set(row["choices"])), 4)
            self.assertTrue(all(choice.startswith(f" what {word[0]} ") for choice in row["choices"]))
            self.assertNotIn(right, row["context"], "the answer must not stand in the lines before")

    def test_the_right_choice_stands_at_every_place(self):
        self.assertEqual({row["answer"] for row in tasks.definitions(self.text)}, {0, 1, 2, 3})

    def test_a_sentence_is_ended_by_its_own_second_half(self):
        rows = tasks.sentence_ends(self.text)
        self.assertTrue(rows)
        whole = {sentence(i) for i in range(90)}
        for row in rows:
            beginning = row["context"][row["context"].rindex("Number"):]
            joined = [beginning + choice in whole for choice in row["choices"]]
            self.assertEqual(joined, [i == row["answer"] for i in range(4)])
            self.assertGreaterEqual(len(row["context"].split()), 300)

    def test_last_words_were_used_before(self):
        rows = tasks.last_words(self.text)
        self.assertTrue(rows)
        for row in rows:
            self.assertNotRegex(row["context"], r"\s$")
            self.assertIn(row["target"] + " and", row["context"][:row["context"].rindex("Number")])

    def test_the_same_text_gives_the_same_bytes(self):
        first = self.run_main()
        self.assertEqual(first, self.run_main())
        self.assertEqual(sorted(os.listdir(self.out)), sorted(f"{name}.jsonl" for name in tasks.TASKS))
        for name in tasks.TASKS:
            with open(os.path.join(self.out, f"{name}.jsonl"), encoding="utf-8") as file:
                self.assertGreaterEqual(len([json.loads(line) for line in file]), 10)

    def test_too_little_text_is_refused_and_nothing_written(self):
        for collection, name in (("wordnet", "a.txt"), ("wordnet", "b.txt")):
            with open(os.path.join(self.text, collection, name), "w", encoding="utf-8") as file:
                file.write("only: one\n")
        with self.assertRaisesRegex(tasks.TaskError, "expected three other choices, found 0"):
            self.run_main()
        self.assertEqual(os.listdir(self.out), [])

    def test_missing_documents_are_named(self):
        with self.assertRaisesRegex(tasks.TaskError, "prepare_text.py writes them"):
            tasks.definitions(os.path.join(self.text, "nowhere"))


if __name__ == "__main__":
    unittest.main()
