"""tokenizer.json: the ids and texts of `replayeval tokenize` are those of the tokenizers library."""

import json
import pathlib
import random
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "eval" / "cli"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import program  # noqa: E402
import text_samples  # noqa: E402
import tokenizer_families as families  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

STRINGS = 10000  # of each family, beside those that hold every character


def converted(folder, values, *options):
    lines = "".join(json.dumps(value) + "\n" for value in values)
    done = program.call("tokenize", folder, "--jsonl", *options, input=lines)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return [json.loads(line) for line in done.stdout.split("\n")[:-1]]


def expect_equal(test, found, expected, inputs):
    test.assertEqual(len(found), len(expected))
    wrong = [i for i in range(len(expected)) if found[i] != expected[i]]
    if wrong:
        shown = "\n".join(f"{inputs[i]!r}\n  found    {found[i]!r}\n  expected {expected[i]!r}" for i in wrong[:5])
        test.fail(f"{len(wrong)} of {len(expected)} differ:\n{shown}")


class FamilyCase:
    """Mixed with unittest.TestCase for each family below."""

    family = ""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="replayeval-tokenizer-")
        cls.path = pathlib.Path(cls.folder.name)
        cls.tokenizer = families.train(cls.family)
        cls.tokenizer.save(str(cls.path / "tokenizer.json"))
        content = cls.tokenizer.to_str()
        old_tables = '"normalizer":null' not in content or '"Punctuation"' in content
        samples = text_samples.Samples(cls.family, families.ADDED_TEXTS, old_tables)
        cls.strings = ["", *samples.strings(STRINGS), *samples.every_character()]
        cls.expected = [encoding.ids for encoding in cls.tokenizer.encode_batch(cls.strings, add_special_tokens=False)]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_ids(self):
        self.assertGreater(len({id for ids in self.expected for id in ids}), 300)
        expect_equal(self, converted(self.path, self.strings), self.expected, self.strings)

    def test_ids_with_special_tokens(self):
        strings = self.strings[:1000]
        expected = [encoding.ids for encoding in self.tokenizer.encode_batch(strings)]
        expect_equal(self, converted(self.path, strings, "--special-tokens"), expected, strings)

    def test_texts(self):
        expect_equal(self, converted(self.path, self.expected),
                     self.tokenizer.decode_batch(self.expected, skip_special_tokens=False), self.expected)

    def test_texts_of_any_ids(self):
        pick = random.Random(self.family)
        known = sorted(self.tokenizer.get_vocab().values())
        lists = [pick.choices(known, k=pick.randrange(1, 12)) for _ in range(5000)]
        expect_equal(self, converted(self.path, lists, "--skip-special-tokens"), self.tokenizer.decode_batch(lists), lists)


class BundledCheckpoint(unittest.TestCase):
    """Its tokenizer.json has a Unigram model, so the program reads tokenizer.model: both must give the same ids."""

    def test_both_files_agree(self):
        folder = program.ROOT / "checkpoints" / "tiny-nemotron-h"
        files = [*program.ROOT.glob("*.md"), *program.ROOT.glob("datasets/*.cpp")]  # none of it was trained on
        # By lines: in long texts, the two sum scores differently where two splits have the same one.
        texts = [line for path in sorted(files) for line in path.read_text(encoding="utf-8").split("\n")]
        texts += [*text_samples.SENTENCES, *text_samples.Samples("bundled").strings(2000)]
        texts += ["", " ", "  ", " Paris", "   three", "a  b ", "\u2581", "\n\n x", "\x00a", "<0x41>", "x<0x0A>y", "日本 🙂"]
        texts += ["<s>", " <s> ", "<s>text", "a<s> b</s>c", "</s></s>\n", "<unk>", "<<s>>", "<s<s>", "< s>", "x </s>  y"]
        self.assertGreater(len(texts), 2000)
        self.assertGreater(sum(text.startswith(" ") for text in texts), 1000)
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        expected = [encoding.ids for encoding in tokenizer.encode_batch(texts, add_special_tokens=False)]
        found = converted(folder, texts)
        # Of two splits into the same pieces (f ff, ff f) either may win: the two sum the scores in different precision.
        ties = {i for i in range(len(texts)) if found[i] != expected[i] and sorted(found[i]) == sorted(expected[i])}
        self.assertLess(len(ties), len(texts) / 1000)
        found = [expected[i] if i in ties else ids for i, ids in enumerate(found)]
        expect_equal(self, found, expected, texts)
        expected = [encoding.ids for encoding in tokenizer.encode_batch(texts[:10])]
        expect_equal(self, converted(folder, texts[:10], "--special-tokens"), expected, texts)


for family in families.FAMILIES:
    name = "Family" + "".join(part.capitalize() for part in family.split("_"))
    globals()[name] = type(name, (FamilyCase, unittest.TestCase), {"family": family})


if __name__ == "__main__":
    unittest.main()
