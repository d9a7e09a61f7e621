"""`replayeval run` of churn with both bundled checkpoints: the example configuration, with fewer arms and sequences."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import program  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLE = (ROOT / "configs/examples/churn.yaml").read_text()
EVENTS = {"admission", "one_token_chunk", "recomputation", "restore", "padded_rows", "reordered_rows"}


SMALLER = (
    ("  - {name: exact-bf16, executor: exact, state_storage: bfloat16}\n", ""),  # as a control it rides along
    ("  - {name: replay-f32-ring-bf16, executor: replay, ring_storage: bfloat16}\n", ""),
    ("batches: [3, 8]", "batches: [3, 5]"),
    ("length: 48", "length: 32"),
    ("length: 20", "length: 12"),
    ("prompt_tokens: 9", "prompt_tokens: 5"),
    ("block: 4", "block: 2"),
)


def config(checkpoint):
    text = EXAMPLE.replace("../../checkpoints/tiny-nemotron-h", str(ROOT / "checkpoints" / checkpoint))
    for old, new in SMALLER:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


class ChurnRun(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="replayeval-churn-")
        self.addCleanup(scratch.cleanup)
        self.work = pathlib.Path(scratch.name)

    def run_config(self, text, *more):
        (self.work / "config.yaml").write_text(text)
        return program.call("run", self.work / "config.yaml", "--output", self.work / "out", "--quiet", *more)

    def test_both_families(self):
        for checkpoint in ("tiny-nemotron-h", "tiny-qwen3-next"):
            with self.subTest(checkpoint):
                done = self.run_config(config(checkpoint), "--overwrite")
                self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
                self.assertEqual(done.stdout.count("checks hold"), 3)
                served, decoded, boundaries = json.loads((self.work / "out/results.json").read_text())["workloads"]
                for workload in (served, decoded):
                    self.look_at(workload["churn"], {"mixer", "prefix", "model"})
                self.look_at(boundaries["churn"], {"mixer", "prefix"})
                self.assertEqual({check["batch"] for check in boundaries["churn"]}, {255, 256, 257})
                self.assertEqual(decoded["data"]["events"][0]["counts"]["restore"], 1)
                self.assertGreater(served["data"]["most_key_value_bytes"], 0)
                report = (self.work / "out/report.md").read_text()
                self.assertEqual(report.count("### Churn\n\nPass"), 3)
                again = self.run_config(config(checkpoint))
                self.assertEqual((again.returncode, again.stdout), (0, done.stdout))

    def look_at(self, checks, levels):
        self.assertEqual({check["level"] for check in checks}, levels)
        self.assertEqual({check["event"] for check in checks if check["level"] == "mixer"}, EVENTS)
        for check in checks:
            self.assertTrue(check["holds"], check)
            self.assertGreater(check["compared"], 0)
            self.assertEqual("bound" in check, check["level"] == "model")
            if check["level"] == "model":
                self.assertLessEqual(check["max_deviation"], check["bound"])
                self.assertLess(check["measured"], check["bound"])
                if check["event"] == "batch_size":
                    self.assertEqual(check["bound_from"], check["arm"] + ", one sequence at once")
                    continue
                narrow = "bf16" in check["arm"]
                self.assertEqual(check["bound_from"], "exact, bfloat16 state" if narrow else "exact-f32")
                self.assertLess(check["bound"], 0.3 if narrow else 3e-4)
            else:
                self.assertTrue(check["bit_identical"], check)

    def test_what_is_broken_is_an_exit_code(self):
        text = config("tiny-nemotron-h")
        text = text[: text.index("  - name: decoded")]
        self.assertEqual(self.run_config(text).returncode, 0)
        file = self.work / "out/results.json"
        results = json.loads(file.read_text())
        check = next(check for check in results["workloads"][0]["churn"] if check["level"] == "mixer")
        check.update(differing=1, bit_identical=False, holds=False, max_deviation=1e-7)
        file.write_text(json.dumps(results))
        done = self.run_config(text)
        self.assertEqual(done.returncode, 1)
        self.assertIn("BROKEN", done.stdout)
        self.assertRegex(done.stdout, r" no: 1 of [\d,]+ differ ")
        self.assertIn("1 of ", done.stderr.splitlines()[-1])
        # Whole lines in the order that they were printed, where both streams share a pipe.
        command = [program.program(), "run", self.work / "config.yaml", "--output", self.work / "out", "--quiet"]
        both = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(both.stdout, done.stdout + done.stderr)

    def stopped(self, *more):
        """What is said last of a run that is stopped when it begins with 'decoded'."""
        process = subprocess.Popen([program.program(), "run", self.work / "config.yaml", "--output", self.work / "out",
                                    *more], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        self.addCleanup(process.stderr.close)
        line = process.stderr.readline()
        while line and not line.startswith("decoded: "):
            line = process.stderr.readline()
        process.terminate()
        _, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, said)
        return said.splitlines()[-1]

    def test_a_stopped_run_keeps_no_part_of_it_and_says_so(self):
        text = config("tiny-nemotron-h").replace("length: 40\n", "length: 400\n")
        (self.work / "config.yaml").write_text(text)
        said = "replayeval: stopped; kept: {}nothing of 'decoded': a churn workload is computed in one go; the same command {}"
        self.assertEqual(self.stopped("--only", "decoded"), said.format("", "starts anew"))
        self.assertEqual(self.stopped(), said.format("1 finished workload and ", "goes on from there"))

    def test_every_chance_may_be_certain(self):
        text = config("tiny-nemotron-h").replace("evict: 0.05", "evict: 1").replace("save: 0.1", "save: 0")
        text = text.replace("pad: 0.3", "pad: 1\n    level: mixers\n    mixers: 1\n    sequences: 4").replace("[3, 5]", "[3]")
        done = self.run_config(text, "--only", "served")
        self.assertEqual(done.returncode, 0, done.stderr)
        served, = json.loads((self.work / "out/results.json").read_text())["workloads"]
        counts = served["data"]["events"][0]["counts"]
        self.assertNotIn("save", counts)
        self.assertEqual(counts["evict"], counts["recomputation"])
        self.assertIn("4 sequences in batches of 3; 1 mixer\n", done.stdout)

    def test_refusals(self):
        for old, new, fragments in (
            ("evict: 0.05", "evict: 1.5", ("config.yaml:24:", "evict", "0 to 1")),
            ("evict: 0.05", "evict: -0.5", ("config.yaml:24:", "evict", "0 or more")),
            ("block: 8", "block: 21", ("config.yaml:22:", "block", "less than prompt_tokens, 21")),
            ("prompt_tokens: 21", "prompt_tokens: 32", ("config.yaml:21:", "less than length, 32")),
            ("evict: 0.05", "evicted: 0.05", ("config.yaml:24:", "evicted", "a churn workload")),
            ("{step: 3, save: 0}", "{step: 3}", ("config.yaml:37:", "expected one of evict, save, pad")),
            ("{step: 6, evict: 0}", "{step: 6, evict: 4}", ("config.yaml:38:", "sequence 4", "step 6", "batch of 3")),
            ("{step: 8, pad: 2}", "{step: 800, pad: 2}", ("config.yaml:40:", "step 800", "never comes")),
        ):
            with self.subTest(new):
                text = config("tiny-nemotron-h").replace(old, new, 1)
                done = self.run_config(text, "--overwrite", "--only", "decoded" if "step" in new else "served")
                self.assertEqual(done.returncode, 3, done.stdout)
                for fragment in fragments:
                    self.assertIn(fragment, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
