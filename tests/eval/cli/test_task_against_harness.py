"""`replayeval run` of tasks gives lm-evaluation-harness's numbers: those that its own `hf` model gave with the bundled
checkpoints on the CPU in float32 (harness/make_samples.py), one task of each type of request, few-shot variants too."""

import json
import math
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import program  # noqa: E402

HARNESS = pathlib.Path(__file__).parent / "harness"
DATE = "2026-01-01T00-00-00.000000"
TASKS = ("animals", "animals_few_shot", "cloze", "cloze_few_shot", "pages")
METRIC = 1e-4
LOG_LIKELIHOOD = 1e-3

ARMS = """
  - {name: exact, executor: exact, state_storage: float32}
  - {name: exact-again, executor: exact, state_storage: float32}
  - {name: replay, executor: replay, state_storage: float32, ring_storage: float32}
"""


def config(checkpoint, prompt):
    workloads = "".join(f"""
  - name: {task}
    kind: task
    source: {{path: "{HARNESS / checkpoint / f'samples_{task}_{DATE}.jsonl'}"}}
    prompt: {prompt}
    margin: 0.05""" for task in TASKS)
    return (f"name: harness\ncheckpoint: {program.ROOT / 'checkpoints' / checkpoint}\nbootstrap_samples: 100\n"
            f"arms:{ARMS}workloads:{workloads}\n")


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def log_likelihoods(row):
    """[(number, whether it was greedy)]; of rolling requests the number alone."""
    return [(float(answer[0][0]), answer[0][1]) if isinstance(answer[0], list) else (float(answer[0]), None)
            for answer in row["resps"]]


def loses_its_space(argument):
    """The bundled tokenizer.json, which the harness reads, drops the space that a text begins with; tokenizer.model, which
    the checkpoints were trained with and the program reads, keeps it. Only requests without context begin with one."""
    return argument["arg_0"] == "" and argument.get("arg_1", "").startswith(" ")


class HarnessTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="replayeval-harness-"))
        cls.runs = {}
        for checkpoint, prompt in (("tiny-nemotron-h", "prefill"), ("tiny-nemotron-h", "decode"),
                                   ("tiny-qwen3-next", "prefill")):
            name = f"{checkpoint}-{prompt}"
            (cls.folder / f"{name}.yaml").write_text(config(checkpoint, prompt))
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

    def test_metrics_are_the_harness_s(self):
        compared = set()
        for _, folder, workload, expected in self.workloads():
            for arm in ("exact", "replay"):
                found = workload["arms"][arm]["metrics"]
                for key, value in expected.items():
                    metric, comma, _ = key.partition(",")
                    if not comma or value == "N/A" or metric.startswith("acc_mutual_info"):  # see loses_its_space
                        continue
                    compared.add(metric)
                    # Perplexities of documents are in the thousands and more: relative there.
                    self.assertTrue(math.isclose(found[metric]["value"], value, rel_tol=METRIC, abs_tol=METRIC),
                                    (folder.name, arm, metric, found[metric], value))
        self.assertLessEqual({"acc", "acc_norm", "acc_bytes", "perplexity", "bits_per_byte",
                              "word_perplexity", "byte_perplexity", "acc_stderr", "perplexity_stderr"}, compared)

    def test_every_log_likelihood_is_the_harness_s(self):
        requests = 0
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
                    for argument, mine, yours in zip(own["arguments"].values(), log_likelihoods(own),
                                                     log_likelihoods(theirs), strict=True):
                        if loses_its_space(argument):
                            continue
                        requests += 1
                        self.assertLessEqual(abs(mine[0] - yours[0]), LOG_LIKELIHOOD, (folder.name, name, arm, own["doc"]))
                        self.assertEqual(mine[1], yours[1], (folder.name, name, arm, own["doc"]))
        self.assertEqual(requests, 3 * 2 * (2 * 13 * 4 + 2 * 14 + 9))

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

    def test_the_table_and_the_report_show_tasks(self):
        folder, done = self.runs["tiny-nemotron-h", "prefill"]
        report = (folder / "report.md").read_text(encoding="utf-8")
        for text in (done.stdout, report):
            for part in ("animals_few_shot", "acc_norm", "bits_per_byte", "identical to the baseline, request for request"):
                self.assertIn(part.replace("_", "\\_") if text is report and part not in text else part, text)


if __name__ == "__main__":
    unittest.main()
