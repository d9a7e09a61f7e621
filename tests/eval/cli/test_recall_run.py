"""`replayeval run` of synthetic recall with a bundled checkpoint, which was trained to answer it."""

import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
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
                self.look_at_the_words(done.stdout, (self.work / "out" / "report.md").read_text())
                again = self.run_config(CONFIG.replace("PROMPT", prompt))
                self.assertEqual(again.stdout.splitlines()[-6:], done.stdout.splitlines()[-6:])

    def test_states_of_documents(self):
        text = CONFIG.replace("PROMPT", "decode").replace("items: 3", "items: 1").replace("items: 2", "items: 1")
        states = "    state_error: {sequences: 2, positions: [64, 200], depths: [local, gold]}\n    tasks:"
        done = self.run_config(text.replace("lengths: [200]", "lengths: [480]").replace("    tasks:", states))
        self.assertEqual(done.returncode, 0, done.stderr)
        workload = json.loads((self.work / "out" / "results.json").read_text())["workloads"][0]
        self.assertEqual(workload["data"]["state_error_sequences"], 2)
        rows = workload["state_errors"]
        self.assertEqual({(row["depth"], row["position"]) for row in rows},
                         {(depth, position) for depth in ("local", "gold") for position in (64, 200)})
        local = {arm: [row["relative_frobenius"] for row in rows if (row["arm"], row["depth"]) == (arm, "local")]
                 for arm in ("again", "replay")}
        self.assertEqual(set(local["again"]), {0})
        self.assertTrue(all(1e-5 < error < 2e-2 for error in local["replay"]), local)  # a bfloat16 ring
        self.assertIn("### State error", (self.work / "out" / "report.md").read_text())
        self.assertIn("State error", (self.work / "out" / "report.html").read_text())

    def test_states_are_not_compared_beyond_documents_or_behind_prefill(self):
        for prompt, position, message in (("prefill", 64, "expected prompt: decode beside it"), ("decode", 481, "480")):
            states = f"    state_error: {{positions: [{position}]}}\n    tasks:"
            done = self.run_config(CONFIG.replace("PROMPT", prompt).replace("    tasks:", states))
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn(message, done.stderr)
            self.assertFalse((self.work / "out").exists())

    def look_at_the_words(self, table, report):
        for heading in ("### Verdict", "### Recall", "### Paired deltas"):
            self.assertIn(heading, report)
        said = "too few documents to tell: no change of accuracy in any of 1 task"
        self.assertRegex(table, r"• again \(exact, float32 state\): " + said)
        self.assertIn("- **again**: " + said, report)
        # An interval over 3 documents stands beside their number, not beside that of the answers alone.
        self.assertRegex(table, r"documents +answers\n")
        self.assertRegex(table, r"facts +exact \* +\d+\.\d \[\d+\.\d, \d+\.\d\] +3 +24\n")
        self.assertIn("| documents | answers |", report)

    def test_too_few_answers_to_tell(self):
        config = CONFIG.replace("PROMPT", "prefill").replace("[480], items: 3", "[480], items: 1, facts: 2, questions: 2")
        done = self.run_config(config[: config.index("      - {kind: copying")])
        self.assertEqual(done.returncode, 0, done.stderr)
        cell = self.workload()["recall"][0]
        self.assertEqual((cell["signal"], cell["accuracy"]["exact"]["value"]), (False, 1))
        said = (r"facts: too few answers to tell the baseline from a guess in 1 of 1 cells "
                r"\(2 of 2 right, chance \d\d %\)")
        report = (self.work / "out" / "report.md").read_text()
        for text in (done.stdout, report):
            self.assertRegex(text, said)
            self.assertIn("too few answers to tell the baseline from a guess in any task", text)
        self.assertIn("100.0 (too few answers)", report)
        self.assertNotIn("no better than a guess in", done.stdout)
        self.assertNotIn("accuracy %", done.stdout)  # no head without a row

    def workload(self):
        workload = json.loads((self.work / "out" / "results.json").read_text())["workloads"][0]
        for arm in workload["arms"].values():  # all but times
            del arm["seconds"], arm["tokens_per_second"]
        del workload["kernel_times"], workload["seconds"]
        return workload

    def test_goes_on_where_it_was_stopped(self):
        for prompt in ("decode", "prefill"):
            with self.subTest(prompt):
                config = CONFIG.replace("PROMPT", f"{prompt}\n    batch: 2").replace("[480], items: 3", "[560], items: 24")
                shutil.rmtree(self.work / "out", ignore_errors=True)
                (self.work / "config.yaml").write_text(config)
                parts = self.work / "out" / "progress" / "recall"
                running = subprocess.Popen([program.program(), "run", str(self.work / "config.yaml"), "--output",
                                            str(self.work / "out"), "--quiet"], stderr=subprocess.PIPE, text=True)
                self.addCleanup(running.stderr.close)
                while not (parts / "000001.json").exists():
                    self.assertIsNone(running.poll(), "it should still be at work")
                    time.sleep(0.01)
                running.send_signal(signal.SIGINT)
                asked = time.monotonic()
                _, said = running.communicate(timeout=60)
                self.assertEqual(running.returncode, 130, said)
                self.assertRegex(said, r"^replayeval: stopped; kept: \d+ finished parts of 'recall'; "
                                       r"the same command goes on from there\n$")
                self.assertLess(time.monotonic() - asked, 10)  # a block of a batch, not a cell; wide for loaded machines
                done = sorted(parts.iterdir())
                self.assertIn(len(done), range(2, 12))
                resumed = self.run_config(config)
                self.assertEqual((resumed.returncode, resumed.stderr), (0, ""))
                self.assertFalse(parts.exists())
                gone_on = self.workload()
                whole = self.run_config(config, "--overwrite")
                self.assertEqual(whole.returncode, 0, whole.stderr)
                self.assertEqual(self.workload(), gone_on)

    def test_parts_are_read_back(self):
        config = CONFIG.replace("PROMPT", "decode") + "  - {name: other, kind: recall, tasks: [{kind: copying, lengths: [99], items: 1}]}\n"
        self.assertEqual(self.run_config(config, "--only", "recall").returncode, 0)
        first = json.loads((self.work / "out" / "results.json").read_text())["workloads"][0]
        (self.work / "out" / "results.json").unlink()
        again = self.run_config(config, "--only", "recall")
        self.assertEqual((again.returncode, again.stderr), (0, ""))
        self.assertEqual(json.loads((self.work / "out" / "results.json").read_text())["workloads"][0], first)  # seconds, too
        part = self.work / "out" / "progress" / "recall" / "000000.json"
        part.write_text(part.read_text().replace("[[1", "[[0", 1))
        (self.work / "out" / "results.json").unlink()
        again = self.run_config(config, "--only", "recall")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("000000.json: damaged", again.stderr)
        self.assertEqual(self.workload()["recall"], first["recall"])

    def test_lengths_are_checked_before_any_work(self):
        for task in ("{kind: facts, lengths: [480, 60], items: 3}", "{kind: needle_single, lengths: [30], items: 1}"):
            config = CONFIG.replace("PROMPT", "decode") + f"  - name: last\n    kind: recall\n    tasks:\n      - {task}\n"
            done = self.run_config(config)
            self.assertEqual(done.returncode, 3, done.stdout)
            self.assertRegex(done.stderr, r"config.yaml:20:9: recall '\w+': lengths: found (60|30), expected \d+ or more: ")
            self.assertEqual(done.stderr.count("\n"), 1)
            self.assertFalse((self.work / "out").exists())

    def test_refusals(self):
        for old, new, fragments in (
            ("kind: facts", "kind: facs", ("config.yaml:15:", "facs")),
            ("lengths: [480]", "lengths: []", ("config.yaml:15:", "lengths")),
            ("lengths: [480]", "length: [400]", ("config.yaml:15:", "length")),
            ("lengths: [480]", "lengths: [20]", ("facts", "20")),
            ("block: 128", "context: 128", ("context", "a recall workload")),
            ("depths: [0.5]", "depths: [0.5, 0.5]", ("config.yaml:16:", "depths: found 0.5 again")),
            ("lengths: [480]", "lengths: [480, 480]", ("config.yaml:15:", "lengths: found 480 again")),
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
