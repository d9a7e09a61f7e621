"""`replayeval run` of synthetic recall with a bundled checkpoint, which was trained to answer it."""

import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import program  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
CONFIG = f"""
name: recall
checkpoint: {ROOT}/checkpoints/tiny-nemotron-h
baseline: exact
arms:
  - {{name: exact, executor: exact}}
  - {{name: again, executor: exact}}
  - {{name: replay, executor: replay, ring_storage: bfloat16}}
workloads:
  - name: recall
    kind: recall
    prompt: PROMPT
    block: 128
    tasks:
      - {{kind: facts, lengths: [480], items: 3}}
      - {{kind: copying, lengths: [200], depths: [0.5], items: 2}}
"""


class RecallRun(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="replayeval-recall-")
        self.addCleanup(scratch.cleanup)
        self.work = pathlib.Path(scratch.name)

    def run_config(self, text, *more):
        (self.work / "config.yaml").write_text(text)
        return program.call("run", self.work / "config.yaml", "--output", self.work / "out", "--quiet", *more)

    def test_both_prompts(self):
        for prompt in ("decode", "prefill"):
            with self.subTest(prompt):
                done = self.run_config(CONFIG.replace("PROMPT", prompt), "--overwrite")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("copying: no signal in 1 of 1 cells", done.stdout)
                workload = json.loads((self.work / "out" / "results.json").read_text())["workloads"][0]
                facts, copying = workload["recall"]
                self.assertTrue(facts["signal"])
                self.assertNotIn("depth", facts)
                self.assertFalse(copying["signal"])
                self.assertEqual(copying["depth"], 0.5)
                for arm in ("exact", "again", "replay"):
                    self.assertGreater(facts["accuracy"][arm]["value"], 0.9)
                    self.assertGreater(workload["arms"][arm]["metrics"]["accuracy/facts"]["value"], 0.9)
                    self.assertNotIn("accuracy/copying", workload["arms"][arm]["metrics"])
                    self.assertGreater(workload["arms"][arm]["state_bytes"], 100000)
                self.assertGreater(workload["arms"]["replay"]["ring_bytes"], 1000)
                layers = {count["layer"] for count in workload["storage_counts"] if count["arm"] == "replay"}
                self.assertEqual(len(layers), 6)
                self.assertTrue((self.work / "out" / "figures" / "recall-recall-facts.svg").is_file())
                self.assertEqual(workload["deltas"]["again"]["accuracy/facts"]["value"], 0)
                self.assertIn("### Recall", (self.work / "out" / "report.md").read_text())
                again = self.run_config(CONFIG.replace("PROMPT", prompt))
                self.assertEqual(again.stdout.splitlines()[-6:], done.stdout.splitlines()[-6:])

    def test_refusals(self):
        for old, new, fragments in (
            ("kind: facts", "kind: facs", ("config.yaml:15:", "facs")),
            ("lengths: [480]", "lengths: []", ("config.yaml:15:", "lengths")),
            ("lengths: [480]", "length: [400]", ("config.yaml:15:", "length")),
            ("lengths: [480]", "lengths: [20]", ("facts", "20")),
            ("block: 128", "context: 128", ("context", "a recall workload")),
            ("items: 2", "items: 2, name: facts", ("another task's already",)),
        ):
            with self.subTest(new):
                done = self.run_config(CONFIG.replace("PROMPT", "decode").replace(old, new))
                self.assertEqual(done.returncode, 3, done.stdout)
                for fragment in fragments:
                    self.assertIn(fragment, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
