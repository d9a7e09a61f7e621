"""`replayeval logits`: what it refuses, and that it then writes nothing."""

import os
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import program  # noqa: E402
import tiny_checkpoint  # noqa: E402


class LogitsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = pathlib.Path(tempfile.mkdtemp(prefix="replayeval-logits-"))
        tiny_checkpoint.make_checkpoint(cls.made / "checkpoint")
        (cls.made / "ids.json").write_text("[1, 5, 9, 200, 30]")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.made)

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="replayeval-logits-"))
        self.addCleanup(shutil.rmtree, self.folder, True)

    def logits(self, *more, ids=None, out=None):
        return program.call("logits", self.made / "checkpoint", "--ids", ids or self.made / "ids.json", "--out",
                            out or self.folder / "out.npy", *more)

    def assert_refused(self, done, *fragments):
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        for fragment in fragments:
            self.assertIn(fragment, done.stderr)
        self.assertFalse((self.folder / "out.npy").exists())

    def test_token_ids(self):
        ids = self.folder / "ids.json"
        for text, fragments in (
            ("[1, 300]", ("token 1 is 300", "0 to 299")),
            ("[-1]", ("token 0 is -1", "0 to 299")),
            ("[1.0]", ("token 0 is 1.0",)),
            ("[99999999999999999999]", ("token 0 is",)),
            ("[18446744073709551615]", ("token 0 is 18446744073709551615",)),
            ("[[1]]", ("token 0 is [1]",)),
            ("[]", ("an empty list",)),
            ("{}", ("expected a JSON list",)),
            ("[1,", ("not valid JSON",)),
        ):
            with self.subTest(text):
                ids.write_text(text)
                self.assert_refused(self.logits(ids=ids), "ids.json", *fragments)
        self.assert_refused(self.logits(ids=self.folder), f"{self.folder}: is a folder; expected a JSON file")
        self.assert_refused(self.logits(ids="/dev/zero"), "/dev/zero: is a device; expected a JSON file")

    def test_arms_that_make_no_sense(self):
        for more, fragments in (
            (["--executor", "exact", "--buffer-len", "4"], ("--buffer-len", "--executor replay")),
            (["--executor", "exact", "--flush", "sequential"], ("--flush", "--executor replay")),
            (["--executor", "replay", "--buffer-len", "0"], ("--buffer-len", "0", "1", "64")),
            (["--executor", "replay", "--buffer-len", "65"], ("--buffer-len", "65", "1", "64")),
            (["--executor", "replay", "--buffer-len", "1.5"], ("--buffer-len", "1.5")),
            (["--executor", "replay", "--ring-dtype", "float16"], ("--ring-dtype", "{bfloat16,float32}")),
            (["--executor", "replay", "--ring-form", "deltas", "--flush", "sequential"], ("deltas", "summed")),
            (["--state-dtype", "float8"], ("--state-dtype", "float8")),
            (["--buffer-len", "4"], ("--buffer-len", "--executor")),
        ):
            with self.subTest(more):
                self.assert_refused(self.logits(*more), *fragments)

    def test_outputs_that_cannot_be(self):
        self.assert_refused(self.logits(out=self.folder / "none" / "out.npy"), "cannot be written")
        pipe = self.folder / "pipe"  # as /dev/null would be, but for the harm if it were replaced
        os.mkfifo(pipe)
        self.assert_refused(self.logits(out=pipe), "pipe", "expected a regular file")
        self.assertTrue(pipe.is_fifo())


if __name__ == "__main__":
    unittest.main()
