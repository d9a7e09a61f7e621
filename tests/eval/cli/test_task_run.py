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
        self.write("choices.jsonl", [{"context": " ".join(words[i : i + 9]), "choices": list(dict.fromkeys(words[i + 9 : i + 29]))[:3], "answer": i % 3}
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

    def test_another_results_file_is_another_run(self):
        rows = [{"doc_id": i, "doc": {"gold": i % 2, "other": 1}, "target": "0",
                 "arguments": [["a river", " the"], ["a river", " of"]]} for i in range(4)]
        self.write("samples.jsonl", rows)
        workload = "  - {name: s, kind: task, source: {path: samples.jsonl, results: results.json}}\n"
        for member in ("gold", "gold", "other"):
            settings = {"output_type": "multiple_choice", "doc_to_target": member}
            (self.folder / "results.json").write_text(json.dumps({"configs": {"s": settings}}))
            done = self.run_config(workload)
            self.assertEqual(done.returncode, 0 if member == "gold" else 3, done.stderr)
        self.assertIn("holds another run (/data/s/settings_sha256", done.stderr)

    def test_samples_without_their_results_file(self):
        """Targets in capitals are right with the task's ignore_case alone; without its results file that is said."""
        self.assertEqual(self.run_config(GENERATED).returncode, 0)
        texts = [json.loads(line)["resps"][0][0] for line in (self.folder / "out/samples/sums.exact.jsonl").read_text().splitlines()]
        contexts = [json.loads(line)["context"] for line in (self.folder / "sums.jsonl").read_text().splitlines()]
        rows = [{"doc_id": i, "doc": {}, "target": text.upper(),
                 "arguments": {"gen_args_0": {"arg_0": context, "arg_1": {"until": ["."], "max_gen_toks": 9}}}}
                for i, (context, text) in enumerate(zip(contexts, texts)) if text.upper() != text]
        self.assertGreater(len(rows), 2)
        self.write("samples_sums_2026.jsonl", rows)
        workload = "  - {name: s, kind: task, source: samples_sums_2026.jsonl}\n"
        said = ("no results_2026.json stands beside the samples, so what the harness judges the task by is not known; taken "
                "for granted: type generate_until, metrics exact_match without options (such as ignore_case), no filters.")
        done = self.run_config(workload, "--overwrite")
        self.assertEqual(done.returncode, 0, done.stderr)
        data = self.results()["s"]["data"]
        self.assertEqual((data["sources"][0]["results"], len(data["warnings"])), (None, 1))
        report = (self.folder / "out/report.md").read_text()
        for text in (done.stderr, " ".join(done.stdout.split()), data["warnings"][0], report):
            self.assertIn(said, text)
        self.assertEqual(self.results()["s"]["arms"]["exact"]["metrics"]["exact_match"]["value"], 0)
        self.assertIn("taken from no results file", report)

        settings = {"output_type": "generate_until", "metric_list": [{"metric": "exact_match", "ignore_case": True}]}
        (self.folder / "results_2026.json").write_text(json.dumps({"configs": {"sums": settings}}))
        done = self.run_config(workload, "--overwrite")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        data = self.results()["s"]["data"]
        self.assertEqual((data["sources"][0]["results"], data["warnings"]), ("results_2026.json", []))
        self.assertEqual(self.results()["s"]["arms"]["exact"]["metrics"]["exact_match"]["value"], 1)
        self.assertIn("results_2026.json", (self.folder / "out/report.md").read_text())

    def test_what_is_not_there_is_said(self):
        both = CHOICES + TEXTS
        self.assertEqual(self.run_config(both, "--only", "texts").returncode, 0)
        report = program.call("report", self.folder / "out")
        self.assertIn("warning: " + str(self.folder / "out") + ": of the config's workloads one is not there: choices", report.stderr)
        self.assertIn("## choices\n\nNot there", (self.folder / "out/report.md").read_text())
        done = self.run_config(both)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertNotIn("Not there", (self.folder / "out/report.md").read_text())
        self.assertNotIn("warning", program.call("report", self.folder / "out").stderr)
        twice = program.call("report", self.folder / "out", self.folder / "out", "--output", self.folder / "merged")
        self.assertEqual(twice.returncode, 3)
        self.assertIn(f"{self.folder}/out and {self.folder}/out: workload 'choices' is in both", twice.stderr)
        (self.folder / "out/samples/texts.replay.jsonl").unlink()
        again = self.run_config(both)
        self.assertEqual(again.returncode, 0)
        self.assertIn("samples/texts.replay.jsonl: is gone; to compute it again, use --overwrite", again.stderr)
        empty = self.run_config(both, "--only", "")
        self.assertEqual(empty.returncode, 3)
        self.assertIn("--only: empty; expected a workload's name", empty.stderr)

    def test_a_name_is_no_pattern(self):
        (self.folder / "choices.jsonl").rename(self.folder / "c[1]*?.jsonl")
        done = self.run_config(CHOICES.replace("choices.jsonl", "'c[1]*?.jsonl'"))
        self.assertEqual(done.returncode, 0, done.stderr)
        shutil.rmtree(self.folder / "out")
        self.refused(CHOICES.replace("choices.jsonl", "'c*.jsonl'"), "key 'source': expected an existing file", "c*.jsonl' is there")
        self.refused(CHOICES.replace("choices.jsonl", '"a\\nb"'), "a\\nb")
        self.refused(TEXTS.replace("}}", "}, margin: 0.1}"), "config.yaml:7:", "key 'margin': means nothing for loglikelihood_rolling")
        for key in ("batch", "seed"):
            self.refused(TEXTS.replace("}}", f"}}, {key}: 2}}"), "config.yaml:7:",
                         f"key '{key}': means nothing for loglikelihood_rolling, which generates nothing; expected no such key")

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

    def test_numbers_that_are_not_finite_are_left_out(self):
        # One word of many tokens: its perplexity is beyond what a double holds. Every other number is there.
        self.write("texts.jsonl", [{"text": "".join(tiny_checkpoint.text(400, seed).split())} for seed in (1, 2, 3)])
        done = self.run_config(TEXTS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("warning: workload 'texts': word_perplexity: 2 values not finite, left out", done.stderr)
        texts = self.results()["texts"]
        self.assertIn("word_perplexity: 2 values not finite, left out", texts["data"]["warnings"])
        self.assertEqual([metric["name"] for metric in texts["data"]["metrics"]], ["byte_perplexity", "bits_per_byte"])
        for arm in ("exact", "replay"):
            self.assertNotIn("word_perplexity", texts["arms"][arm]["metrics"])
            self.assertGreater(texts["arms"][arm]["metrics"]["bits_per_byte"]["value"], 0)
        self.assertIn("bits_per_byte", texts["deltas"]["replay"])

    def test_nothing_to_score(self):
        self.write("texts.jsonl", [{"text": ""}])
        done = self.run_config(TEXTS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("byte_perplexity: 2 values not finite, left out", done.stderr)
        self.assertEqual(set(self.results()["texts"]["arms"]["exact"]["metrics"]), {"word_perplexity"})

    def test_states_of_prompts(self):
        states = CHOICES.replace("prompt: decode", "prompt: decode, state_error: {sequences: 4, positions: [3, 9]}")
        done = self.run_config(states.replace("choices.jsonl", "{path: choices.jsonl, max_documents: 12}"))
        self.assertEqual(done.returncode, 0, done.stderr)
        workload = self.results()["choices"]
        self.assertEqual(workload["data"]["state_error_sequences"], 4)
        self.assertEqual({row["position"] for row in workload["state_errors"]}, {3, 9})
        self.assertEqual({row["depth"] for row in workload["state_errors"]}, {"local", "propagated", "gold"})
        self.assertIn("### State error", (self.folder / "out/report.md").read_text())
        shutil.rmtree(self.folder / "out")
        self.refused(states.replace("[3, 9]", "[3, 9000]"), "state_error looks at position 9000, but the longest prompt has")
        self.refused(states.replace("positions: [3, 9]", "count: 3"), "expected positions instead")
        self.refused(states.replace(", positions: [3, 9]", ""), "key 'positions'")
        self.refused(states.replace("prompt: decode, ", ""), "expected prompt: decode beside it")

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
        choices = CHOICES.replace("choices.jsonl", "{path: choices.jsonl, metrics: [bleu]}")
        self.refused(choices, "choices.jsonl: metrics: found none that is known for multiple_choice (bleu)", "acc_norm")
        self.refused(choices.replace("bleu", "acc, acc"), "config.yaml:7:", "a second metric 'acc'")
        self.refused(choices.replace("bleu", ""), "config.yaml:7:", "at least one metric")
        self.refused(CHOICES.replace("choices.jsonl", "/dev/zero"), "/dev/zero: is a device; expected a regular file")
        self.write("choices.jsonl", [{"context": "a", "choices": ["b"], "answer": 0}])
        self.refused(CHOICES, "choices.jsonl: line 1: choices", "two texts or more")
        self.write("choices.jsonl", [{"context": "a", "choices": ["b", "c"], "answer": 3}])
        self.refused(CHOICES, "choices.jsonl: line 1", "answer")


if __name__ == "__main__":
    unittest.main()
