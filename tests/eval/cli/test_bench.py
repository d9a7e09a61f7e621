"""`replayeval bench model`: what it times and prints, and what it refuses."""

import json
import math
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import program  # noqa: E402
import tiny_checkpoint  # noqa: E402

CONFIG = """
name: bench
checkpoint: checkpoint
baseline: exact
arms:
  - {name: exact, executor: exact, state_storage: float32}
  - {name: five, executor: replay, state_storage: bfloat16, ring_storage: bfloat16, buffer_len: 5}
  - {name: eight, executor: replay, state_storage: float32, ring_storage: float32, buffer_len: 8}
workloads:
  - {name: ids, kind: perplexity, sources: [{random_ids: {documents: 1, tokens: 8, seed: 3}}], context: 8}
"""
MIXERS, HEADS, HEAD_DIM, STATE = 2, 3, 8, 16  # of the tiny checkpoint


class Bench(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = pathlib.Path(tempfile.mkdtemp(prefix="replayeval-bench-"))
        cls.addClassCleanup(shutil.rmtree, cls.made)
        tiny_checkpoint.make_checkpoint(cls.made / "checkpoint")
        (cls.made / "config.yaml").write_text(CONFIG)

    def bench(self, *more, config="config.yaml", rounds=2, batch="1,3"):
        return program.call("bench", "model", self.made / config, f"--rounds={rounds}", f"--batch={batch}", *more)

    def assert_refused(self, done, *fragments):
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        for fragment in fragments:
            self.assertIn(fragment, done.stderr)

    def test_json(self):
        done = self.bench("--json", "--context", "6")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        for key, value in (("model_type", "nemotron_h"), ("context", 6), ("rounds", 2), ("baseline", "exact"),
                           ("parameters", sum(w.size for w in tiny_checkpoint._weights(tiny_checkpoint.CONFIG).values()))):
            self.assertEqual(found[key], value)
        self.assertGreater(found["load_seconds"], 0)
        self.assertTrue(found["environment"])
        self.assertRegex(found["tool"]["git"], "^[0-9a-f]{7}")
        self.assertEqual([(arm["name"], arm["executor"]) for arm in found["arms"]],
                         [("exact", "exact"), ("five", "replay"), ("eight", "replay")])
        self.assertEqual([(row["batch"], row["arm"]) for row in found["rows"]],
                         [(batch, arm) for batch in (1, 3) for arm in ("exact", "five", "eight")])
        state, entry = MIXERS * HEADS * HEAD_DIM * STATE, HEADS * HEAD_DIM + STATE
        held = {"exact": 4 * state, "five": 2 * state + MIXERS * 5 * (2 * entry + 4 * HEADS),
                "eight": 4 * state + MIXERS * 8 * (4 * entry + 4 * HEADS)}
        for row in found["rows"]:
            with self.subTest(row["arm"], batch=row["batch"]):
                self.assertEqual(row["steps_per_round"], math.lcm(5, 8))  # whole cycles of every arm, for all arms
                seconds = row["step_seconds"]
                self.assertTrue(0 < seconds["low"] <= seconds["median"] <= seconds["high"])
                self.assertAlmostEqual(row["tokens_per_second"], row["batch"] / seconds["median"], delta=1e-6 / seconds["median"])
                self.assertTrue(0 < row["mixer_share"] < 1)
                self.assertEqual(row["cache_bytes"], row["batch"] * held[row["arm"]])
                self.assertEqual(row["device_bytes"], 0)  # on the CPU
                self.assertEqual((row["cuda_graphs"], row["no_cuda_graphs_because"]), (False, "on the CPU"))
                self.assertEqual(list(row["mixer_seconds"]), [row["arm"]])
                parts = row["mixer_parts"][row["arm"]]
                self.assertEqual(sorted(parts), ["conv", "gated_norm", "mamba2"])
                self.assertAlmostEqual(sum(parts.values()), row["mixer_seconds"][row["arm"]], delta=1e-9)
                self.assertTrue(0 < row["predicted_seconds"] < seconds["high"])
                self.assertEqual(row["turns"], 3)

    def test_short_rings_are_timed_for_sixteen_steps_at_least(self):
        text = CONFIG.replace("buffer_len: 5", "buffer_len: 1").replace("buffer_len: 8", "buffer_len: 3")
        (self.made / "short.yaml").write_text(text)
        found = json.loads(self.bench("--json", config="short.yaml").stdout)
        self.assertEqual({row["steps_per_round"] for row in found["rows"]}, {18})

    def test_table(self):
        done = self.bench()
        self.assertEqual(done.returncode, 0, done.stderr)
        speeds, parts = done.stdout.split("\n\n")
        rows = [line.split() for line in speeds.splitlines()[1:]]
        self.assertEqual([row[:2] for row in rows],
                         [[batch, arm] for batch in ("1", "3") for arm in ("exact", "five", "eight")])
        for row in rows:
            if row[1] == "exact":
                self.assertIn("1.000×", row)
            self.assertRegex(" ".join(row), r"% [1-9][0-9.]* [KM]iB –$")  # units that show it; no peak on the CPU
        self.assertIn("batch 3, eight:", done.stderr)
        self.assertEqual([line.split()[:2] for line in parts.splitlines()[1:]], [row[:2] for row in rows])
        for line in parts.splitlines()[1:]:
            self.assertRegex(line, r"conv [0-9.]+ +gated_norm [0-9.]+ +mamba2 [0-9.]+")

    def test_some_arms_and_two_stacked(self):
        done = self.bench("--json", "--arms", "five,exact", "--stacked", "five,exact", batch=3)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual([row["arm"] for row in found["rows"]], ["exact", "five"])
        (exact, five), (both,) = found["rows"], found["stacked"]
        self.assertEqual(both["arm"], "five + exact")
        self.assertEqual(both["cache_bytes"], exact["cache_bytes"] + five["cache_bytes"])
        self.assertEqual(both["steps_per_round"], 20)
        slower, other = sorted((exact, five), key=lambda row: -row["step_seconds"]["median"])
        self.assertEqual(both["alone"], {
            "slower": slower["arm"], "slower_seconds": slower["step_seconds"]["median"],
            "mixer_seconds_of_other": other["mixer_seconds"][other["arm"]]})
        table = self.bench("--arms", "exact,five", "--stacked", "exact,five", "--no-graphs", batch=2)
        self.assertIn("exact + five", table.stdout)
        self.assertIn("of slower", table.stdout)
        self.assertIn("Steps launched kernel by kernel: on the CPU.", table.stderr)

    def test_teacher_forced(self):
        done = self.bench("--json", "--teacher-forced", "--tokens", "40", "--sequences", "3")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)["scoring"]
        self.assertEqual((found["sequences"], found["tokens"]), (3, 40))
        self.assertAlmostEqual(found["tokens_per_second"] * found["seconds"], 120, delta=1e-6)
        self.assertAlmostEqual(sum(found["share"].values()), 1.0, delta=1e-9)
        self.assertLessEqual({"products", "mixers", "attention", "norm", "metrics", "rest"}, set(found["share"]))
        for part, share in found["share"].items():
            self.assertTrue(0 <= share < 1, part)
        table = self.bench("--teacher-forced", "--tokens", "8", "--block", "3")
        self.assertIn("blocks of 3: ", table.stdout)
        self.assertIn("tokens/s, each under every arm", table.stdout)
        self.assertRegex(table.stdout, r"[0-9.]+%  products")

    def test_refusals(self):
        """All of them before the model is loaded: one line."""
        # The tiny model has 512 positions; two rounds, one to warm up and two under the clock take 5 x 40 of them.
        fits = 512 - 5 * 40 - 1
        self.assertEqual(self.bench("--context", fits, batch=1).returncode, 0)
        for more, options, fragments in (
            (["--context", fits + 1], {}, (f"{fits + 1} tokens of context", "2 rounds of 40 steps", "512 positions")),
            (["--context=-1"], {}, ("context -1", "0 or more")),
            ([], dict(rounds=0), ("0 rounds", "1 to 512")),
            ([], dict(rounds=2**62), ("1 to 512",)),
            ([], dict(batch="1,0"), ("batch 0", "at least 1")),
            ([], dict(batch="one"), ("--batch", "one")),
            (["--device", "tpu"], {}, ("--device", "tpu")),
            (["--unheard-of"], {}, ("--unheard-of",)),
            (["--stacked", "exact"], {}, ("stacked", "two different")),
            (["--stacked", "exact,none"], {}, ("'none'", "exact, five, eight")),
            (["--arms", "none"], {}, ("--arms", "config.yaml")),
            (["--teacher-forced", "--tokens", "0"], {}, ("0 tokens to score", "512 positions")),
            (["--teacher-forced", "--tokens", "8", "--sequences=-1"], {}, ("-1 sequences",)),
            (["--teacher-forced", "--tokens", "8", "--block", "0"], {}, ("block 0", "at least 1")),
            (["--tokens", "8"], {}, ("--tokens", "--teacher-forced")),
        ):
            with self.subTest(more, **options):
                self.assert_refused(self.bench(*more, **options), *fragments)

    def test_configs_and_commands_that_are_not_there(self):
        self.assert_refused(self.bench(config="none.yaml"), "none.yaml")
        (self.made / "bad.yaml").write_text(CONFIG.replace("buffer_len: 5", "buffer_len: 0"))
        self.assert_refused(self.bench(config="bad.yaml"), "bad.yaml", "buffer_len", "1 to 64")
        (self.made / "lost.yaml").write_text(CONFIG.replace("checkpoint: checkpoint", "checkpoint: lost"))
        self.assert_refused(self.bench(config="lost.yaml"), "lost")
        self.assert_refused(program.call("bench"), "bench --help")
        self.assert_refused(program.call("bench", "model"), "config")


if __name__ == "__main__":
    unittest.main()
