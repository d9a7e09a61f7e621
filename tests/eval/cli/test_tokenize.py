"""`replayeval tokenize`: text to ids and back, and every way to ask for it wrongly."""

import gzip
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import program  # noqa: E402

CHECKPOINT = program.ROOT / "checkpoints" / "tiny-nemotron-h"
TEXT = "The state of a naïve model, 42 times."


class TokenizeTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="replayeval-tokenize-")
        self.path = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def tokenize(self, *arguments, **options):
        return program.call("tokenize", CHECKPOINT, *arguments, **options)

    def expect_refused(self, message, *arguments, **options):
        done = self.tokenize(*arguments, **options)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn(message, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_round_trip(self):
        ids = self.tokenize("--text", TEXT).stdout.split()
        self.assertGreater(len(ids), 5)
        self.assertEqual(self.tokenize("--decode", ",".join(ids)).stdout, TEXT + "\n")
        self.assertEqual(self.tokenize("--decode", json.dumps([int(i) for i in ids])).stdout, TEXT + "\n")

    def test_text_file_gzip_and_stdin_agree(self):
        (self.path / "plain.txt").write_text(TEXT, encoding="utf-8")
        (self.path / "packed").write_bytes(gzip.compress(TEXT.encode()))
        expected = self.tokenize("--text", TEXT).stdout
        self.assertEqual(self.tokenize(self.path / "plain.txt").stdout, expected)
        self.assertEqual(self.tokenize(self.path / "packed").stdout, expected)
        self.assertEqual(self.tokenize(input=TEXT).stdout, expected)

    def test_json(self):
        said = json.loads(self.tokenize("--text", TEXT, "--json").stdout)
        self.assertEqual(said["tokens"], len(said["ids"]))
        self.assertEqual(len(said["pieces"]), len(said["ids"]))
        self.assertEqual(said["bytes"], len(TEXT.encode()))
        self.assertLess(max(said["ids"]), said["vocab_size"])
        back = json.loads(self.tokenize("--decode", " ".join(map(str, said["ids"])), "--json").stdout)
        self.assertEqual(back["text"], TEXT)

    def test_bad_text(self):
        self.expect_refused("--text: is empty", "--text", "")
        self.expect_refused("absent.txt: cannot be opened", self.path / "absent.txt")
        (self.path / "latin1.txt").write_bytes(b"caf\xe9")
        self.expect_refused("latin1.txt: byte 3: found e9, expected UTF-8", self.path / "latin1.txt")
        done = subprocess.run([program.program(), "tokenize", CHECKPOINT], input=b"a\xff", capture_output=True, check=False)
        self.assertEqual(done.returncode, 3)
        self.assertIn(b"standard input: byte 1", done.stderr)

    def test_bad_ids(self):
        self.expect_refused("found 'x2', expected a token id", "--decode", "1,x2")
        self.expect_refused("found '99999999999'", "--decode", "99999999999")
        self.expect_refused("is outside the vocabulary", "--decode", "1,999999")
        self.expect_refused("no token ids", "--decode", "[]")

    def test_json_lines(self):
        texts = [TEXT, "", "two\nlines\u2028"]
        lines = "".join(json.dumps(text) + "\n" for text in texts)
        ids = self.tokenize("--jsonl", input=lines).stdout
        self.assertEqual(json.loads(ids.split("\n")[0]), [int(i) for i in self.tokenize("--text", TEXT).stdout.split()])
        back = self.tokenize("--jsonl", input=ids).stdout
        self.assertEqual([json.loads(line) for line in back.split("\n")[:-1]], texts)
        (self.path / "texts.jsonl").write_text(lines)
        self.assertEqual(self.tokenize(self.path / "texts.jsonl", "--jsonl").stdout, ids)
        first = json.loads(self.tokenize("--jsonl", "--special-tokens", input=lines).stdout.split("\n")[0])
        self.assertEqual(first, [1, *json.loads(ids.split("\n")[0])])

    def test_bad_json_lines(self):
        for line in ("{", '"a" "b"', "[1, -1]", "[1.5]", '{"a": 1}', '["a"]', "[4294967296]", '"\\ud800"'):
            self.expect_refused("standard input: line 2: found", "--jsonl", input=f'"good"\n{line}\n')
        self.expect_refused("standard input: line 1: ", "--jsonl", input="[999999]\n")

    def test_bad_usage(self):
        self.assertEqual(self.tokenize("--jsonl", "--text", "a").returncode, 3)
        self.assertEqual(self.tokenize("--text", "a", "--decode", "1").returncode, 3)
        self.assertEqual(program.call("tokenize").returncode, 3)
        done = program.call("tokenize", self.path)
        self.assertEqual(done.returncode, 3)
        self.assertIn("holds no tokenizer; expected a tokenizer.json or a tokenizer.model", done.stderr)


if __name__ == "__main__":
    unittest.main()
