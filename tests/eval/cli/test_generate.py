"""`replayeval generate`: one arm's text as it comes, several arms side by side, and what is refused."""

import json
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import program  # noqa: E402
import tiny_checkpoint  # noqa: E402

PROMPT = "the river carries what"
LOSSY = "replay:state-dtype=bfloat16,ring-dtype=bfloat16,buffer-len=4"


class Generate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="replayeval-generate-"))
        tiny_checkpoint.make_checkpoint(cls.folder / "checkpoint")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def generate(self, *arguments, max_tokens=40, **options):
        return program.call("generate", self.folder / "checkpoint", "--max-tokens", max_tokens, *arguments, **options)

    def described(self, *arguments, **options):
        done = self.generate("--json", *arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_the_stream_is_the_text(self):
        for more in ((), ("--temperature", 1.2, "--seed", 3), ("--arm", LOSSY), ("--stop", "he")):
            with self.subTest(more):
                said = self.described("--prompt", PROMPT, *more)
                done = self.generate("--prompt", PROMPT, *more)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(done.stdout, said["arms"][0]["text"] + "\n")

    def test_prompts_of_all_kinds_are_the_same(self):
        text = self.described("--prompt", PROMPT)
        ids = self.folder / "ids.json"
        ids.write_text(json.dumps(text["prompt_ids"]))
        self.assertEqual(self.described("--ids", ids), text)
        self.assertEqual(self.described(input=PROMPT + "\n"), text)

    def test_draws_depend_on_the_seed_alone(self):
        drawn = ("--prompt", PROMPT, "--temperature", 1.5, "--ignore-eos")
        said = self.described(*drawn, "--compare", "--arm", "exact", "--arm", "exact", "--arm", LOSSY)
        first, again, lossy = said["arms"]
        self.assertEqual([arm["name"] for arm in said["arms"]], ["exact", "exact (2)", LOSSY])
        self.assertEqual(first["ids"], again["ids"])
        self.assertTrue(again["identical"])
        self.assertEqual(len(first["ids"]), 40)
        self.assertEqual(first["ids"], self.described(*drawn)["arms"][0]["ids"])
        self.assertEqual(lossy["ids"], self.described(*drawn, "--arm", LOSSY)["arms"][0]["ids"])
        self.assertNotEqual(first["ids"], self.described(*drawn, "--seed", 1)["arms"][0]["ids"])
        greedy = self.described("--prompt", PROMPT, "--ignore-eos")["arms"][0]["ids"]
        self.assertEqual(self.described(*drawn, "--top-k", 1)["arms"][0]["ids"], greedy)
        self.assertEqual(self.described(*drawn, "--top-p", 1e-9)["arms"][0]["ids"], greedy)
        self.assertNotEqual(self.described(*drawn, "--top-k", 3)["arms"][0]["ids"], first["ids"])
        if not lossy["identical"]:
            at = lossy["first_divergence"]
            self.assertEqual(first["ids"][:at], lossy["ids"][:at])
            self.assertNotEqual(first["ids"][at], lossy["ids"][at])

    def test_side_by_side(self):
        done = self.generate("--prompt", PROMPT, "--compare", "--temperature", 3, "--ignore-eos")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("exact: 40 tokens, reached --max-tokens\n", done.stdout)
        self.assertRegex(done.stdout, r"\nreplay: 40 tokens, reached --max-tokens; (the same as|parts from) exact")
        done = self.generate("--prompt", PROMPT, "--compare", "--temperature", 3, "--ignore-eos", "--arm", "exact", "--arm",
                             "exact:state-dtype=float16")
        self.assertEqual(done.returncode, 0, done.stderr)
        if "parts from" in done.stdout:
            self.assertIn(" ║ ", done.stdout)

    def test_endings(self):
        whole = self.described("--prompt", PROMPT, "--ignore-eos")["arms"][0]
        self.assertEqual((whole["ending"], len(whole["ids"])), ("limit", 40))
        stop = whole["text"][10:13]
        cut = self.described("--prompt", PROMPT, "--ignore-eos", "--stop", stop)["arms"][0]
        self.assertEqual((cut["ending"], cut["text"]), ("stop", whole["text"][: whole["text"].index(stop)]))
        other = self.folder / "ends"
        if not other.exists():
            shutil.copytree(self.folder / "checkpoint", other)
            (other / "generation_config.json").write_text(json.dumps({"eos_token_id": [2, whole["ids"][6]]}))
        ended = json.loads(program.call("generate", other, "--json", "--prompt", PROMPT).stdout)
        self.assertEqual(ended["end_tokens"], sorted({2, whole["ids"][6]}))
        self.assertEqual(ended["arms"][0]["ending"], "end_token")
        self.assertEqual(ended["arms"][0]["ids"], whole["ids"][: whole["ids"].index(whole["ids"][6])])

    def test_refusals(self):
        (self.folder / "none.json").write_text("[]")
        (self.folder / "far.json").write_text("[1, 300]")
        for arguments, parts, more in (
            (("--prompt", ""), ("--prompt: is empty",), {}),
            ((), ("standard input: is empty",), {"input": "\n"}),
            (("--ids", self.folder / "none.json"), ("none.json: an empty list",), {}),
            (("--ids", self.folder / "far.json"), ("far.json: token 1 is 300",), {}),
            (("--prompt", PROMPT), ("--max-tokens", "not in range 1"), {"max_tokens": 0}),
            (("--prompt", PROMPT), ("--max-tokens 512", "512 positions"), {"max_tokens": 512}),
            (("--prompt", PROMPT, "--temperature", "-1"), ("temperature is -1", "0 or more"), {}),
            (("--prompt", PROMPT, "--temperature", 1, "--top-p", 0), ("top_p is 0", "at most 1"), {}),
            (("--prompt", PROMPT, "--top-k", 5), ("--top-k", "--temperature above 0"), {}),
            (("--prompt", PROMPT, "--temperature", "nan"), ("temperature is nan", "finite"), {}),
            (("--prompt", PROMPT, "--stop", ""), ("--stop", "empty"), {}),
            (("--prompt", PROMPT, "--seed", "-1"), ("--seed", "0 or more"), {}),
            (("--ids", "/dev/zero"), ("/dev/zero: is a device",), {}),
            (("--prompt", PROMPT, "--arm", "exactly"), ("--arm exactly", "exact"), {}),
            (("--prompt", PROMPT, "--arm", "exact:buffer-len=4"), ("--buffer-len", "--executor replay"), {}),
            (("--prompt", PROMPT, "--arm", "replay:buffer-len=65"), ("--arm replay:buffer-len=65", "65"), {}),
            (("--prompt", PROMPT, "--arm", "replay:length=6"), ("--arm replay:length=6", "--length"), {}),
            (("--prompt", PROMPT, "--arm", "replay:fast"), ("'fast'", "OPTION=VALUE"), {}),
            (("--prompt", PROMPT, "--arm", "exact", "--arm", "replay"), ("2 arms", "--compare"), {}),
            (("--prompt", PROMPT, "--compare", "--arm", "exact"), ("--compare: one arm",), {}),
            (("--prompt", PROMPT, "--ids", self.folder / "far.json"), ("--ids", "--prompt"), {}),
        ):
            with self.subTest(arguments):
                done = self.generate(*arguments, **more)
                self.assertEqual((done.returncode, done.stdout), (3, ""))
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                for part in parts:
                    self.assertIn(part, done.stderr)
        done = program.call("generate", self.folder / "nowhere", "--prompt", PROMPT)
        self.assertEqual(done.returncode, 3)
        self.assertIn("nowhere", done.stderr)


if __name__ == "__main__":
    unittest.main()
