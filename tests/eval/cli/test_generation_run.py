"""`replayeval run` of generations as a whole: where prompts come from, work that goes on where it stopped, what an A/A pair
and a batch must not change, and all that can go wrong."""

import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import program  # noqa: E402
import tiny_checkpoint  # noqa: E402

HEAD = """name: generation
checkpoint: checkpoint
bootstrap_samples: 100
arms:
  - {name: exact, executor: exact, state_storage: float32}
  - {name: again, executor: exact, state_storage: float32}
  - {name: replay, executor: replay, state_storage: bfloat16, ring_storage: bfloat16, buffer_len: 4}
workloads:
"""
DRAWN = """  - name: drawn
    kind: generation
    prompts: {path: prompts.jsonl}
    max_tokens: 24
    temperature: 1.5
    seed: 5
    repeats: 2
    batch: 3
"""


class GenerationRun(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="replayeval-generation-"))
        tiny_checkpoint.make_checkpoint(cls.shared / "checkpoint")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.shared)

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="replayeval-generation-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        (self.folder / "checkpoint").symlink_to(self.shared / "checkpoint")
        self.write("prompts.jsonl", [{"id": i, "prompt": tiny_checkpoint.text(3 + i % 5, i)} for i in range(9)])

    def write(self, name, rows):
        (self.folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    def run_config(self, workloads, *arguments, out="out"):
        (self.folder / "config.yaml").write_text(HEAD + workloads)
        return program.call("run", self.folder / "config.yaml", "--output", self.folder / out, "--quiet", *arguments)

    def workload(self, out="out", number=0):
        return json.loads((self.folder / out / "results.json").read_text())["workloads"][number]

    def samples(self, arm, workload="drawn", out="out"):
        path = self.folder / out / "samples" / f"{workload}.{arm}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]

    def tokens(self, arm, workload="drawn", out="out"):
        return numpy.load(self.folder / out / "tokens" / f"{workload}.{arm}.generated.npy")

    def test_results_samples_and_tokens(self):
        done = self.run_config(DRAWN)
        self.assertEqual(done.returncode, 0, done.stderr)
        workload = self.workload()
        data = workload["data"]
        self.assertEqual((data["prompts"], data["sequences"], data["slots"]), (9, 18, 3))
        self.assertEqual(data["end_tokens"], [2])
        for name in ("length", "truncated", "looped", "repeated_3grams", "compression_ratio"):
            for arm in ("exact", "again", "replay"):
                self.assertIn("value", workload["arms"][arm]["metrics"][name])
            self.assertEqual(workload["deltas"]["again"][name]["value"], 0)
            delta = workload["deltas"]["replay"][name]
            # Nine prompts that are all alike have no t interval; a score interval of flags there always is.
            if delta["value"] != 0 or name in ("truncated", "looped"):
                self.assertIn("low", delta)
        self.assertEqual(workload["divergence"]["again"]["identical"]["value"], 1)
        self.assertLess(workload["divergence"]["replay"]["identical"]["value"], 1)
        self.assertNotIn("began_at_tie", workload["divergence"]["replay"])  # drawn
        self.assertEqual({row["step"] for row in workload["agreement"]}, {1, 2, 4, 8, 16, 24})
        for arm in ("exact", "replay"):
            ids, rows = self.tokens(arm), self.samples(arm)
            self.assertEqual((ids.shape[0], len(rows)), (18, 9))
            lengths = (ids >= 0).sum(axis=1)
            self.assertAlmostEqual(lengths.mean(), workload["arms"][arm]["metrics"]["length"]["value"])
            self.assertEqual([row["doc_id"] for row in rows], list(range(9)))
            self.assertEqual(rows[3]["arguments"]["gen_args_0"]["arg_0"], tiny_checkpoint.text(6, 3))
            self.assertEqual([len(row["resps"][0]) for row in rows], [2] * 9)
        numpy.testing.assert_array_equal(self.tokens("exact"), self.tokens("again"))
        base, replay = self.tokens("exact"), self.tokens("replay")
        width = min(base.shape[1], replay.shape[1])
        same = [bool((base[i, :width] == replay[i, :width]).all()) for i in range(18)]
        self.assertAlmostEqual(sum(same) / 18, workload["divergence"]["replay"]["identical"]["value"])
        report = (self.folder / "out" / "report.md").read_text()
        for part in ("### Degeneration", "### Agreement with the baseline", "18 sequences of at most 24 tokens",
                     "identical to the baseline: every sequence, token for token"):
            self.assertIn(part, report)
        for part in ("identical %", "temperature 1.5", "Decode speed with all arms in one batch"):
            self.assertIn(part, done.stdout)
        self.assertGreater(workload["arms"]["exact"]["tokens_per_second"], 0)
        self.assertGreater(workload["arms"]["replay"]["ring_bytes"], 0)
        again = self.run_config(DRAWN)
        self.assertEqual((again.returncode, again.stdout), (0, done.stdout))
        made = program.call("report", self.folder / "out")
        self.assertIn("identical %", made.stdout)

    def test_neither_batch_nor_the_other_arms_change_a_text(self):
        self.run_config(DRAWN, out="three")
        for batch in (1, 18):
            done = self.run_config(DRAWN.replace("batch: 3", f"batch: {batch}"), out=f"of{batch}")
            self.assertEqual(done.returncode, 0, done.stderr)
            for arm in ("exact", "replay"):
                numpy.testing.assert_array_equal(self.tokens(arm, out="three"), self.tokens(arm, out=f"of{batch}"))

    def test_work_goes_on_where_it_stopped(self):
        whole = self.run_config(DRAWN, out="whole")
        self.assertEqual(whole.returncode, 0, whole.stderr)
        # The first of two workloads is done, so that its parts stay; then one is damaged and the results are lost.
        second = "  - {name: second, kind: generation, prompts: {path: prompts.jsonl}, max_tokens: 2}\n"
        done = self.run_config(DRAWN + second, "--only", "drawn")
        self.assertEqual(done.returncode, 0, done.stderr)
        parts = sorted((self.folder / "out/progress/drawn").iterdir())
        self.assertEqual(len(parts), 2)  # of 12 and 6 sequences
        before = self.workload()
        for name in ("results.json", "samples/drawn.replay.jsonl"):
            (self.folder / "out" / name).unlink()
        done = self.run_config(DRAWN + second, "--only", "drawn")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.workload(), before)  # seconds, too: nothing was computed
        (self.folder / "out/results.json").unlink()
        parts[1].write_text(parts[1].read_text().replace("ending", "Ending", 1))
        parts[0].unlink()
        done = self.run_config(DRAWN + second, "--only", "drawn")
        self.assertIn(f"{parts[1].name}: damaged", done.stderr)
        for key in ("deltas", "divergence", "agreement", "storage_counts"):
            self.assertEqual(self.workload()[key], before[key])
        for arm in ("exact", "again", "replay"):
            self.assertEqual(self.samples(arm), self.samples(arm, out="whole"))
            numpy.testing.assert_array_equal(self.tokens(arm), self.tokens(arm, out="whole"))

    def test_an_interrupted_run_is_resumed(self):
        long = DRAWN.replace("max_tokens: 24", "max_tokens: 400\n    ignore_eos: true").replace("batch: 3", "batch: 2")
        (self.folder / "config.yaml").write_text(HEAD + long)
        process = subprocess.Popen([program.program(), "run", self.folder / "config.yaml", "--output", self.folder / "out",
                                    "--quiet"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.time() + 120
        while not (self.folder / "out/progress/drawn/000000.json").exists() and time.time() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, said)
        self.assertRegex(said, r"stopped; kept: \d+ finished parts? of 'drawn'; the same command goes on from there")
        self.assertFalse((self.folder / "out/results.json").exists())
        done = self.run_config(long)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.run_config(long, out="whole").returncode, 0)
        for arm in ("exact", "replay"):
            numpy.testing.assert_array_equal(self.tokens(arm), self.tokens(arm, out="whole"))
        self.assertEqual(self.workload()["storage_counts"], self.workload(out="whole")["storage_counts"])
        self.assertEqual(self.tokens("exact").shape, (18, 400))
        self.assertEqual(self.workload()["arms"]["exact"]["metrics"]["truncated"]["value"], 1)

    def interrupted(self, workloads, *more):
        """What is said of a run that is stopped when it begins to generate."""
        (self.folder / "config.yaml").write_text(HEAD + workloads)
        process = subprocess.Popen([program.program(), "run", self.folder / "config.yaml", "--output", self.folder / "out",
                                    *more], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        self.addCleanup(process.stderr.close)
        line = process.stderr.readline()
        while line and not line.startswith("long: "):
            line = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, said)
        return said.splitlines()[-1]

    def test_a_stopped_run_says_what_is_kept(self):
        long = DRAWN.replace("max_tokens: 24", "max_tokens: 400\n    ignore_eos: true").replace("name: drawn", "name: long")
        self.assertEqual(self.interrupted(long), "replayeval: stopped; kept: nothing of 'long', no part of which was "
                                                 "finished; the same command starts anew")
        self.assertFalse((self.folder / "out").exists())
        both = DRAWN.replace("max_tokens: 24", "max_tokens: 2") + long
        kept = "replayeval: stopped; kept: 1 finished workload and nothing of 'long', no part of which was finished; the same command"
        self.assertEqual(self.interrupted(both, "--overwrite"), kept + " without --overwrite goes on from there")
        self.assertTrue((self.folder / "out/results.json").exists())
        self.assertEqual(self.interrupted(both), kept + " goes on from there")

    def test_greedy_texts_end_where_they_should(self):
        greedy = DRAWN.replace("temperature: 1.5", "temperature: 0").replace("    repeats: 2\n", "")
        done = self.run_config(greedy.replace("max_tokens: 24", "max_tokens: 24\n    ignore_eos: true"))
        self.assertEqual(done.returncode, 0, done.stderr)
        ids = self.tokens("exact")
        self.assertEqual((ids >= 0).sum(), 9 * 24)
        workload = self.workload()
        if workload["divergence"]["replay"]["identical"]["value"] < 1:
            self.assertIn("began_at_tie", workload["divergence"]["replay"])
        ending = int(ids[0, 5])
        cut = greedy.replace("max_tokens: 24", f"max_tokens: 24\n    end_tokens: [{ending}]")
        self.assertEqual(self.run_config(cut, out="cut").returncode, 0)
        for whole, short in zip(ids, self.tokens("exact", out="cut"), strict=True):
            first = int(numpy.argmax(whole == ending)) if ending in whole else 24
            self.assertEqual(short[short >= 0].tolist(), whole[:first].tolist())
        text = self.samples("exact")[1]["resps"][0][0]
        stop = text[len(text) // 2 : len(text) // 2 + 3]
        stopped = greedy.replace("seed: 5", f"stop: [{json.dumps(stop)}]")
        self.assertEqual(self.run_config(stopped, out="stop").returncode, 0)
        for row in self.samples("exact", out="stop"):
            self.assertNotIn(stop, row["resps"][0][0])
        self.assertEqual(self.samples("exact", out="stop")[1]["resps"][0][0], text[: text.index(stop)])

    def test_prompts_of_every_form(self):
        self.write("ids.jsonl", [{"tokens": [1, 17, 40]}, {"tokens": [9]}])
        self.write("tasks.jsonl", [{"context": "the river", "target": "x", "until": ["."]}])
        (self.folder / "text.txt").write_text(tiny_checkpoint.text(600, 4))
        forms = ["{path: ids.jsonl, field: tokens}", "{path: prompts.jsonl, count: 4}",
                 "{text: text.txt, tokens: 16, count: 5}", "{samples: {path: tasks.jsonl, type: generate_until}}"]
        workloads = "".join(f"  - {{name: w{i}, kind: generation, prompts: {form}, max_tokens: 3, prompt: {prompt}}}\n"
                            for i, form in enumerate(forms) for prompt in (("decode", "prefill")[i % 2],))
        done = self.run_config(workloads)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([self.workload(number=i)["data"]["prompts"] for i in range(4)], [2, 4, 5, 1])
        for i in range(4):
            self.assertEqual(self.workload(number=i)["divergence"]["again"]["identical"]["value"], 1)
        places = [row["doc"]["first_token"] for row in self.samples("exact", "w2")]
        self.assertEqual(places, sorted(places))
        self.assertGreater(places[-1], 16 * 5)  # spread over the text

    def test_recall_documents_as_prompts(self):
        recall = ("  - {name: facts, kind: generation, max_tokens: 6, stop: \".\", prompts: {recall: {kind: facts, "
                  "lengths: [480], items: 3, facts: 4, questions: 1}}}\n")
        (self.folder / "checkpoint").unlink()
        (self.folder / "checkpoint").symlink_to(program.ROOT / "checkpoints" / "tiny-nemotron-h")
        done = self.run_config(recall)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.workload()["data"]["prompts"], 3)
        rows = self.samples("exact", "facts")
        self.assertTrue(rows[0]["doc"]["id"].startswith("facts/480/"))
        told = sum(row["resps"][0][0] in row["arguments"]["gen_args_0"]["arg_0"] for row in rows)
        self.assertEqual(told, 3)  # what the checkpoint answers was said in its prompt

    def refused(self, workload, *parts):
        done = self.run_config(workload)
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)
        self.assertFalse((self.folder / "out").exists())

    def test_refusals_leave_nothing(self):
        (self.folder / "empty.jsonl").write_text("\n")
        (self.folder / "text.txt").write_text(tiny_checkpoint.text(60, 4))
        self.write("odd.jsonl", [{"prompt": "fine"}, {"prompt": 7}])
        self.write("ids.jsonl", [{"prompt": [3, 300]}])
        self.write("none.jsonl", [{"prompt": []}])
        self.write("scored.jsonl", [{"context": "a", "target": "b"}])
        self.write("long.jsonl", [{"prompt": tiny_checkpoint.text(900, 1)}])
        (self.folder / "latin.jsonl").write_bytes(b'{"prompt": "\xe9"}\n')

        def prompts(text):
            return DRAWN.replace("{path: prompts.jsonl}", text)

        self.refused(prompts("{path: nowhere.jsonl}"), "config.yaml:11:", "expected an existing file")
        self.refused(prompts("{path: empty.jsonl}"), "empty.jsonl: holds no prompt")
        self.refused(prompts("{path: odd.jsonl}"), "odd.jsonl: line 2: prompt", "a text or a list of token ids")
        self.refused(prompts("{path: ids.jsonl}"), "ids.jsonl: line 1: prompt", "300")
        self.refused(prompts("{path: none.jsonl}"), "none.jsonl: line 1: prompt", "an empty prompt")
        self.refused(prompts("{path: prompts.jsonl, field: text}"), "prompts.jsonl: line 1", "'text' is missing")
        self.refused(prompts("{path: long.jsonl}"), "long.jsonl: line 1", "512 positions")
        self.refused(prompts("{path: latin.jsonl}"), "latin.jsonl: line 1: byte 13")
        self.refused(prompts("{path: prompts.jsonl, sha256: abc}"), "sha256 is", "expected abc")
        self.refused(prompts("{text: text.txt, tokens: 16, count: 900}"), "expected at least the 900 pieces of 16 tokens of count")
        self.refused(prompts("{path: prompts.jsonl, count: 900}"), "prompts.jsonl: found 9, expected at least the 900 prompts of count")
        self.write("tasks.jsonl", [{"context": "the river", "target": "x", "until": ["."]}])
        self.refused(prompts("{samples: {path: tasks.jsonl, type: generate_until}, count: 3}"),
                     "tasks.jsonl: found 1, expected at least the 3 documents of count")
        self.refused(DRAWN.replace("seed: 5", "top_k: 301"), "top_k: found 301, expected at most the vocabulary's 300")
        self.refused(prompts("{samples: scored.jsonl}"), "loglikelihood; expected generate_until")
        self.refused(DRAWN.replace("max_tokens: 24", "max_tokens: 512"), "max_tokens 512", "512 positions")
        self.refused(DRAWN.replace("max_tokens: 24", "max_tokens: 0"), "config.yaml:12:17: key 'max_tokens'")
        self.refused(DRAWN.replace("1.5", "-1"), "config.yaml:13:18: key 'temperature'", "0 or more")
        self.refused(DRAWN.replace("1.5", ".nan"), "config.yaml:13:18: key 'temperature'")
        self.refused(DRAWN.replace("seed: 5", "speed: 5"), "config.yaml:14:5: key 'speed': unknown")
        self.refused(DRAWN.replace("seed: 5", "end_tokens: [300]"), "end_tokens: found 300, expected ids from 0 to 299")


if __name__ == "__main__":
    unittest.main()
