"""`replayeval run` of tasks gives lm-evaluation-harness's numbers: those that its own `hf` model gave with the bundled
checkpoints and three random ones of other architectures (harness/random_checkpoints.py) on the CPU in float32
(harness/make_samples.py), one task of each type of request without generation, few-shot variants too."""

import json
import math
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).parent / "harness"))
import program  # noqa: E402
import random_checkpoints  # noqa: E402

HARNESS = pathlib.Path(__file__).parent / "harness"
DATE = "2026-01-01T00-00-00.000000"
TASKS = ("animals", "animals_few_shot", "cloze", "cloze_few_shot", "pages")
MARGIN = "\n    margin: 0.05"  # pages are neither right nor wrong
METRIC = 1e-4
LOG_LIKELIHOOD = 1e-3

ARMS = """
  - {name: exact, executor: exact, state_storage: float32}
  - {name: exact-again, executor: exact, state_storage: float32}
  - {name: replay, executor: replay, state_storage: float32, ring_storage: float32}
"""


BUNDLED = (("tiny-nemotron-h", "prefill"), ("tiny-nemotron-h", "decode"), ("tiny-qwen3-next", "prefill"))
RUNS = (*BUNDLED, *((name, "prefill") for name in random_checkpoints.MODELS))


def config(checkpoint, folder, prompt):
    workloads = "".join(f"""
  - name: {task}
    kind: task
    source: {{path: "{HARNESS / checkpoint / f'samples_{task}_{DATE}.jsonl'}"}}
    prompt: {prompt}{'' if task == 'pages' else MARGIN}""" for task in TASKS)
    # The harness's numbers are transformers', whose gated norms span all groups.
    return (f"name: harness\ncheckpoint: {folder}\nbootstrap_samples: 100\nnumerics: {{norm_span: transformers}}\n"
            f"arms:{ARMS}workloads:{workloads}\n")


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def log_likelihoods(row):
    """[(number, whether it was greedy)]; of rolling requests the number alone."""
    return [(float(answer[0][0]), answer[0][1]) if isinstance(answer[0], list) else (float(answer[0]), None)
            for answer in row["resps"]]


class HarnessTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="replayeval-harness-"))
        cls.runs = {}
        for checkpoint, prompt in RUNS:
            name = f"{checkpoint}-{prompt}"
            weights = program.ROOT / "checkpoints" / checkpoint
            if (checkpoint, prompt) not in BUNDLED:
                weights = random_checkpoints.make(checkpoint, cls.folder / checkpoint)
            (cls.folder / f"{name}.yaml").write_text(config(checkpoint, weights, prompt))
            done = program.call("run", cls.folder / f"{name}.yaml", "--output", cls.folder / name, "--quiet")
            assert done.returncode == 0, done.stderr
            cls.runs[checkpoint, prompt] = (cls.folder / name, done)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def workloads(self):
        for (checkpoint, _), (folder, _) in self.runs.items():
            expected = json.loads((HARNESS / checkpoint / f"results_{DATE}.json").read_text(encoding="utf-8"))["results"]
            for workload in json.loads((folder / "results.json").read_text())["workloads"]:
                yield checkpoint, folder, workload, expected[workload["name"]]

    def test_the_random_weights_are_those_that_the_harness_saw(self):
        for name in random_checkpoints.MODELS:
            self.assertEqual(random_checkpoints.digest(self.folder / name),
                             (HARNESS / name / "weights.sha256").read_text(encoding="utf-8").strip(), name)

    def test_requests_longer_than_the_context_are_cut_as_the_harness_cuts_them(self):
        folder, _ = self.runs["random-bamba", "prefill"]
        counts = {workload["name"]: workload["data"]["encoding"]["cut_contexts"]
                  for workload in json.loads((folder / "results.json").read_text())["workloads"]}
        self.assertGreater(counts["animals_few_shot"], 0)

    def test_metrics_are_the_harness_s(self):
        compared = set()
        for _, folder, workload, expected in self.workloads():
            for arm in ("exact", "replay"):
                found = workload["arms"][arm]["metrics"]
                for key, value in expected.items():
                    metric, comma, _ = key.partition(",")
                    if not comma or value == "N/A":
                        continue
                    compared.add(metric)
                    # Perplexities of documents are in the thousands and more: relative there.
                    self.assertTrue(math.isclose(found[metric]["value"], value, rel_tol=METRIC, abs_tol=METRIC),
                                    (folder.name, arm, metric, found[metric], value))
        self.assertLessEqual({"acc", "acc_norm", "acc_bytes", "acc_mutual_info", "perplexity", "bits_per_byte",
                              "word_perplexity", "byte_perplexity", "acc_stderr", "perplexity_stderr"}, compared)

    def test_every_log_likelihood_is_the_harness_s(self):
        requests, largest = 0, {}
        for checkpoint, folder, workload, _ in self.workloads():
            name = workload["name"]
            expected = rows(HARNESS / checkpoint / f"samples_{name}_{DATE}.jsonl")
            for arm in ("exact", "replay"):
                found = rows(folder / "samples" / f"{name}.{arm}.jsonl")
                self.assertEqual([row["doc_id"] for row in found], [row["doc_id"] for row in expected])
                for own, theirs in zip(found, expected, strict=True):
                    self.assertEqual(list(own), list(theirs))
                    for key in ("doc", "target", "arguments", "filter", "doc_hash", "prompt_hash", "target_hash"):
                        self.assertEqual(own[key], theirs[key])
                    for mine, yours in zip(log_likelihoods(own), log_likelihoods(theirs), strict=True):
                        requests += 1
                        place = f"{folder.name}, {arm}"
                        largest[place] = max(largest.get(place, 0), abs(mine[0] - yours[0]))
                        self.assertLessEqual(abs(mine[0] - yours[0]), LOG_LIKELIHOOD, (folder.name, name, arm, own["doc"]))
                        self.assertEqual(mine[1], yours[1], (folder.name, name, arm, own["doc"]))
        print(*(f"{place}: largest log-likelihood difference {found:.1e}" for place, found in largest.items()), sep="\n")
        self.assertEqual(requests, len(RUNS) * 2 * (2 * 13 * 8 + 2 * 14 + 9))

    def test_equal_arms_and_equal_choices_are_equal_to_the_bit(self):
        for _, folder, workload, _ in self.workloads():
            samples = [(folder / "samples" / f"{workload['name']}.{arm}.jsonl").read_bytes()
                       for arm in ("exact", "exact-again")]
            self.assertEqual(*samples)
            self.assertEqual(workload["divergence"]["exact-again"]["log_likelihood_max"]["value"], 0)
            for delta in workload["deltas"]["exact-again"].values():
                self.assertEqual(delta["value"], 0)
            for row in rows(folder / "samples" / f"{workload['name']}.replay.jsonl"):
                if row["doc"].get("question") == "Equal choices":
                    same = [row["resps"][i] for i in (0, 1, 3)]
                    self.assertEqual(same, same[:1] * 3)

    def test_deltas_say_what_was_tested(self):
        for _, _, workload, _ in self.workloads():
            if not workload["name"].startswith("animals"):
                continue
            delta = workload["deltas"]["replay"]["acc"]
            self.assertIn("McNemar", delta["method"])
            self.assertLessEqual(delta["low"], delta["value"])
            answers = workload["data"]["answers"]["replay"]["acc"]
            self.assertEqual(sum(answers.values()), 13)
            self.assertEqual(workload["data"]["equivalence"]["exact-again"]["acc"]["margin"], 0.05)

    def test_tasks_are_taken_together(self):
        for folder, done in self.runs.values():
            families = {(family["metric"], family["arm"]): family
                        for family in json.loads((folder / "results.json").read_text())["task_families"]}
            self.assertEqual({arm for _, arm in families}, {"exact-again", "replay"})
            family = families["acc", "replay"]  # of both request types that have one
            self.assertEqual([task["workload"] for task in family["tasks"]], [task for task in TASKS if task != "pages"])
            self.assertEqual(family["n"], 2 * 13 + 2 * 14)
            self.assertEqual(families["acc_norm", "replay"]["n"], 2 * 13)
            same = families["acc", "exact-again"]
            self.assertEqual((same["gained"], same["lost"], same["by_question"]["value"], same["by_question"]["p_value"]),
                             (0, 0, 0, 1))
            self.assertEqual({task["adjusted_p_value"] for task in same["tasks"]}, {1})
            self.assertEqual(same["equivalence"]["margin"], 0.05)
            self.assertGreater(same["documents_to_show_equivalence"], 1)
            self.assertIn("all, by document", done.stdout)
            self.assertIn("## All tasks together", (folder / "report.md").read_text(encoding="utf-8"))

    def test_the_table_and_the_report_show_tasks(self):
        folder, done = self.runs["tiny-nemotron-h", "prefill"]
        report = (folder / "report.md").read_text(encoding="utf-8")
        for text in (done.stdout, report):
            for part in ("animals_few_shot", "acc_norm", "bits_per_byte", "identical to the baseline, request for request"):
                self.assertIn(part.replace("_", "\\_") if text is report and part not in text else part, text)


if __name__ == "__main__":
    unittest.main()
