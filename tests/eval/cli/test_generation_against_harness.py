"""`replayeval run` of generate_until tasks gives lm-evaluation-harness's texts and metrics: those that its own `hf` model
gave, greedily, with the bundled checkpoints on the CPU in float32 (harness/make_generation_samples.py)."""

import json
import math
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import program  # noqa: E402

HARNESS = pathlib.Path(__file__).parent / "harness" / "generation"
CHECKPOINTS = ("tiny-nemotron-h", "tiny-qwen3-next")
DATE = "2026-01-01T00-00-00.000000"
TASKS = ("facts", "facts_few_shot", "texts")

ARMS = """
  - {name: exact, executor: exact, state_storage: float32}
  - {name: exact-again, executor: exact, state_storage: float32}
  - {name: replay, executor: replay, state_storage: float32, ring_storage: float32}
"""


def config(checkpoint):
    workloads = "".join(f"""
  - name: {task}
    kind: task
    source: "{HARNESS / checkpoint / f'samples_{task}_{DATE}.jsonl'}"
    batch: 4""" for task in TASKS)
    return (f"name: harness\ncheckpoint: {program.ROOT / 'checkpoints' / checkpoint}\nbootstrap_samples: 100\n"
            f"arms:{ARMS}workloads:{workloads}\n")


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


class GenerationHarnessTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="replayeval-harness-"))
        cls.said = {}
        for checkpoint in CHECKPOINTS:
            (cls.folder / f"{checkpoint}.yaml").write_text(config(checkpoint))
            done = program.call("run", cls.folder / f"{checkpoint}.yaml", "--output", cls.folder / checkpoint, "--quiet")
            assert done.returncode == 0, done.stderr
            cls.said[checkpoint] = done.stdout

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def workloads(self):
        for checkpoint in CHECKPOINTS:
            expected = json.loads((HARNESS / checkpoint / f"results_{DATE}.json").read_text(encoding="utf-8"))["results"]
            for workload in json.loads((self.folder / checkpoint / "results.json").read_text())["workloads"]:
                yield checkpoint, workload, expected[workload["name"]]

    def test_every_row_is_the_harness_s(self):
        texts = set()
        for checkpoint, workload, _ in self.workloads():
            expected = rows(HARNESS / checkpoint / f"samples_{workload['name']}_{DATE}.jsonl")
            for arm in ("exact", "exact-again", "replay"):
                found = rows(self.folder / checkpoint / "samples" / f"{workload['name']}.{arm}.jsonl")
                self.assertEqual(len(found), len(expected))
                for own, theirs in zip(found, expected, strict=True):
                    self.assertEqual(own, theirs, (checkpoint, workload["name"], arm))
                    texts.add(own["resps"][0][0])
        self.assertGreater(len(texts), 30)  # of 2 checkpoints and 20 documents

    def test_metrics_are_the_harness_s(self):
        right = 0
        for _, workload, expected in self.workloads():
            for arm in ("exact", "replay"):
                found = workload["arms"][arm]["metrics"]
                for key, value in expected.items():
                    metric, comma, kind = key.partition(",")
                    if not comma or value == "N/A":
                        continue
                    error = "_stderr" if metric.endswith("_stderr") else ""
                    name = metric if kind == "none" else f"{metric.removesuffix('_stderr')},{kind}{error}"
                    self.assertTrue(math.isclose(found[name]["value"], value, abs_tol=1e-6), (arm, key, found[name], value))
                    right += value if metric == "exact_match" else 0
        self.assertGreater(right, 0)  # some of the facts are recalled

    def test_arms_are_compared_text_for_text(self):
        for checkpoint, workload, _ in self.workloads():
            self.assertEqual(workload["divergence"]["exact-again"]["identical"]["value"], 1)
            self.assertEqual(workload["data"]["sequences"], workload["data"]["documents"])
            self.assertEqual(workload["data"]["mode"], "stepwise")
            name = next(name for name in workload["arms"]["exact"]["metrics"] if name.startswith("exact_match"))
            self.assertIn("McNemar", workload["deltas"]["replay"][name]["method"])
            report = (self.folder / checkpoint / "report.md").read_text(encoding="utf-8")
            for part in ("### Metrics", "### Degeneration", "### Agreement with the baseline"):
                self.assertIn(part, report)
            self.assertIn("identical to the baseline", self.said[checkpoint])


if __name__ == "__main__":
    unittest.main()
