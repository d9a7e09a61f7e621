"""`replayeval run` of tasks as a whole: plain files, work that goes on where it stopped, all that can go wrong."""

import json
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import program  # noqa: E402
import tiny_checkpoint  # noqa: E402

ARMS = """
checkpoint: checkpoint
arms:
  - {name: exact, executor: exact, state_storage: float32}
  - {name: replay, executor: replay, state_storage: bfloat16, ring_storage: bfloat16, buffer_len: 4}
workloads:
"""
CHOICES = "  - {name: choices, kind: task, source: choices.jsonl, prompt: decode}\n"
TEXTS = "  - {name: texts, kind: task, source: {path: texts.jsonl, max_documents: 3}}\n"
GENERATED = "  - {name: sums, kind: task, source: {path: sums.jsonl, type: generate_until}}\n"


class TaskRunTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="replayeval-task-"))
        tiny_checkpoint.make_checkpoint(self.folder / "checkpoint")
        words = tiny_checkpoint.text(400, 3).split()
        self.write("choices.jsonl", [{"context": " ".join(words[i : i + 9]), "choices": words[i + 9 : i + 12], "answer": i % 3}
                                     for i in range(300)])
        self.write("texts.jsonl", [{"text": " ".join(words[i : i + 40])} for i in range(0, 200, 40)])
        self.write("sums.jsonl", [{"context": f"{word} river", "target": [word, "the"], "until": ["."], "max_gen_toks": 9}
                                  for word in words[:6]])

    def tearDown(self):
        shutil.rmtree(self.folder)

    def write(self, name, rows):
        (self.folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    def run_config(self, workloads, *arguments):
        (self.folder / "config.yaml").write_text("name: tasks\n" + ARMS.lstrip() + workloads)
        return program.call("run", self.folder / "config.yaml", "--output", self.folder / "out", "--quiet", *arguments)

    def results(self):
        return {workload["name"]: workload
                for workload in json.loads((self.folder / "out" / "results.json").read_text())["workloads"]}

    def test_plain_files(self):
        done = self.run_config(CHOICES + TEXTS)
        self.assertEqual(done.returncode, 0, done.stderr)
        results = self.results()
        self.assertEqual(results["choices"]["data"]["documents"], 300)
        self.assertEqual(results["texts"]["data"]["documents"], 3)
        self.assertEqual(set(results["choices"]["arms"]["exact"]["metrics"]), {"acc", "acc_stderr", "acc_norm", "acc_norm_stderr"})
        answers = results["choices"]["data"]["answers"]["replay"]["acc"]
        self.assertAlmostEqual((answers["gained"] - answers["lost"]) / 300, results["choices"]["deltas"]["replay"]["acc"]["value"])
        right = [json.loads(line)["acc"] for line in (self.folder / "out/samples/choices.replay.jsonl").read_text().splitlines()]
        self.assertAlmostEqual(sum(right) / 300, results["choices"]["arms"]["replay"]["metrics"]["acc"]["value"])
        self.assertEqual(answers["both_right"] + answers["gained"], sum(right))
        self.assertGreater(results["texts"]["divergence"]["replay"]["log_likelihood_max"]["value"], 0)
        again = self.run_config(CHOICES + TEXTS)
        self.assertEqual((again.returncode, again.stdout), (0, done.stdout))

    def test_generated_answers(self):
        done = self.run_config(GENERATED)
        self.assertEqual(done.returncode, 0, done.stderr)
        workload = self.results()["sums"]
        self.assertEqual((workload["data"]["sequences"], workload["data"]["max_tokens"]), (6, 9))
        self.assertIn("exact_match", workload["arms"]["replay"]["metrics"])
        self.assertIn("exact_match", workload["deltas"]["replay"])
        self.assertIn("identical", workload["divergence"]["replay"])
        self.assertGreater(workload["arms"]["exact"]["tokens_per_second"], 0)
        rows = [json.loads(line) for line in (self.folder / "out/samples/sums.exact.jsonl").read_text().splitlines()]
        self.assertEqual([row["resps"][0][0] == row["filtered_resps"][0] for row in rows], [True] * 6)
        self.assertFalse(any("." in row["resps"][0][0] for row in rows))
        drawn = GENERATED.replace("sums,", "sums, seed: 4, batch: 2,")
        self.write("sums.jsonl", [{"context": "the river", "target": "x", "max_gen_toks": 9, "temperature": 1, "top_p": 0.99,
                                   "top_k": 100}] * 4)
        texts = []
        for seed in (4, 4, 5):
            done = self.run_config(drawn.replace("seed: 4", f"seed: {seed}"), "--overwrite")
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = (self.folder / "out/samples/sums.exact.jsonl").read_text().splitlines()
            texts.append([json.loads(line)["resps"] for line in lines])
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])
        self.assertEqual(len({json.dumps(text) for text in texts[0]}), 4)  # a draw of its own for each document

    def test_work_goes_on_where_it_stopped(self):
        # One of two workloads is done, so that its parts stay; its results are lost.
        done = self.run_config(CHOICES + TEXTS, "--only", "choices")
        self.assertEqual(done.returncode, 0, done.stderr)
        parts = sorted((self.folder / "out/progress/choices").iterdir())
        self.assertGreaterEqual(len(parts), 1)
        before = self.results()["choices"]
        samples = (self.folder / "out/samples/choices.replay.jsonl").read_bytes()
        (self.folder / "out/results.json").unlink()
        (self.folder / "out/samples/choices.replay.jsonl").unlink()
        done = self.run_config(CHOICES + TEXTS, "--only", "choices")
        self.assertEqual((done.returncode, done.stderr.count("warning")), (0, 0), done.stderr)
        self.assertEqual(self.results()["choices"], before)  # seconds, too: nothing was computed
        self.assertEqual((self.folder / "out/samples/choices.replay.jsonl").read_bytes(), samples)
        (self.folder / "out/results.json").unlink()
        parts[0].write_text(parts[0].read_text().replace("false", "true", 1))
        done = self.run_config(CHOICES + TEXTS, "--only", "choices")
        self.assertIn(f"{parts[0].name}: damaged", done.stderr)
        self.assertEqual(self.results()["choices"]["deltas"], before["deltas"])
        self.assertEqual((self.folder / "out/samples/choices.replay.jsonl").read_bytes(), samples)

    def test_merged_parts_are_taken_together(self):
        both = CHOICES + CHOICES.replace("name: choices", "name: again")
        whole = self.run_config(both)
        self.assertEqual(whole.returncode, 0, whole.stderr)
        families = json.loads((self.folder / "out/results.json").read_text())["task_families"]
        self.assertEqual([family["metric"] for family in families], ["acc", "acc_norm"])
        self.assertEqual([task["workload"] for task in families[0]["tasks"]], ["choices", "again"])
        alone, delta = families[0]["tasks"][0]["delta"], self.results()["choices"]["deltas"]["replay"]["acc"]
        self.assertEqual(alone, delta)
        self.assertAlmostEqual(families[0]["by_question"]["value"], delta["value"])  # the same documents twice
        for name in ("choices", "again"):
            shutil.rmtree(self.folder / "out", ignore_errors=True)
            self.assertEqual(self.run_config(both, "--only", name).returncode, 0)
            self.assertNotIn("task_families", json.loads((self.folder / "out/results.json").read_text()))
            (self.folder / "out").rename(self.folder / name)
        merged = program.call("report", self.folder / "choices", self.folder / "again", "--output", self.folder / "merged")
        self.assertEqual(merged.returncode, 0, merged.stderr)
        self.assertEqual(json.loads((self.folder / "merged/results.json").read_text())["task_families"], families)
        self.assertIn("all tasks together", merged.stdout)

    def refused(self, workloads, *parts):
        done = self.run_config(workloads)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)
        self.assertFalse((self.folder / "out").exists())

    def test_refusals_leave_nothing(self):
        self.write("sums.jsonl", [{"context": "1 + 1 =", "target": "2", "temperature": 0.5, "top_p": 1.5, "until": ["."]}])
        self.refused(GENERATED, "sums.jsonl: line 1: top_p is 1.5", "at most 1")
        self.refused(CHOICES.replace("choices.jsonl", "none.jsonl"), "config.yaml:7:", "expected an existing file")
        self.write("choices.jsonl", [{"context": "a", "choices": ["b"], "answer": 3}])
        self.refused(CHOICES, "choices.jsonl: line 1", "answer")


if __name__ == "__main__":
    unittest.main()
