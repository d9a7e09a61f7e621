"""`replayeval bench kernels` on the CPU: what it times, checks and prints, and what it refuses."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import program  # noqa: E402

SMALL = ["--device=cpu", "--batch=1,3", "--repeats=2", "--buffer-len=4", "--heads=4", "--groups=2", "--key-heads=1",
         "--value-heads=2", "--key-dim=16", "--value-dim=24", "--head-dim=16", "--state-size=24"]


class BenchKernels(unittest.TestCase):
    def bench(self, *more):
        given = {option.split("=")[0] for option in more}
        small = [option for option in SMALL if option.split("=")[0] not in given]
        return program.call("bench", "kernels", *small, *more)

    def test_a_stopped_bench_leaves_the_file_as_it_was(self):
        with tempfile.TemporaryDirectory() as made:
            old = pathlib.Path(made) / "old.json"
            old.write_text("old")
            for path in (old, pathlib.Path(made) / "new.json"):
                small = [option for option in SMALL if not option.startswith("--repeats")]
                running = subprocess.Popen([program.program(), "bench", "kernels", *small, "--repeats=100000000",
                                            f"--json={path}"], stdout=subprocess.PIPE, text=True)
                self.assertIn("plain reads", running.stdout.readline())
                running.terminate()
                running.stdout.close()
                self.assertNotEqual(running.wait(), 0)
            self.assertEqual([file.name for file in pathlib.Path(made).iterdir()], ["old.json"])
            self.assertEqual(old.read_text(), "old")
            done = self.bench("--state=float32", f"--json={made}")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f"{made}: cannot be written; expected a file for --json", done.stderr)

    def test_every_family_and_what_is_in_a_row(self):
        for family, states in (("mamba2", ["float32", "float16"]), ("gated_delta", ["float32", "bfloat16"]),
                               ("kda", ["float32", "bfloat16"])):
            with self.subTest(family=family), tempfile.TemporaryDirectory() as made:
                path = pathlib.Path(made) / "bench.json"
                done = self.bench(f"--family={family}", f"--json={path}", "--by-position")
                self.assertEqual(done.returncode, 0, done.stderr)
                found = json.loads(path.read_text())
                self.assertEqual([(row["state"], row["batch"]) for row in found["rows"]],
                                 [(state, batch) for state in states for batch in (1, 3)])
                self.assertRegex(found["tool"]["git"], "^[0-9a-f]{7}")
                self.assertRegex(found["environment"]["date"], r"^20\d\d-\d\d-\d\dT")
                self.assertIn("at mixed ring positions", done.stdout)
                self.assertIn("y against the CPU kernels", done.stdout)
                for row in found["rows"]:
                    self.assertEqual(row["output_error"], 0.0)  # the timed kernels are the CPU's
                    self.assertEqual(len(row["replay_by_position"]), 4)
                    for timed in ("exact", "replay", "replay_mixed"):
                        self.assertLessEqual(row[timed]["min"], row[timed]["microseconds"])
                        self.assertGreater(row[timed]["min"], 0)
                        self.assertGreater(row[timed]["bytes"], 0)

    def test_bytes_of_a_step(self):
        with tempfile.TemporaryDirectory() as made:
            path = pathlib.Path(made) / "bench.json"
            self.assertEqual(self.bench("--state=float32", f"--json={path}").returncode, 0)
            row = json.loads(path.read_text())["rows"][1]  # of three sequences
        heads, groups, rows, columns, length = 4, 2, 16, 24, 4
        state = 3 * heads * rows * columns * 4
        token = 3 * (2 * heads * rows + 2 * groups * columns + heads) * 2
        entry = 3 * ((heads * rows + groups * columns) * 2 + heads * 4)
        self.assertEqual(row["exact"]["bytes"], 2 * state + token)
        self.assertAlmostEqual(row["replay"]["bytes"],
                               state * (1 + 1 / length) + entry * ((length - 1) / 2 + (length - 1) / length) + token)

    def test_parts_of_a_mixer(self):
        with tempfile.TemporaryDirectory() as made:
            path = pathlib.Path(made) / "bench.json"
            for family, channels, inner in (("mamba2", 64 + 2 * 48, 64), ("gated_delta", 2 * 16 + 48, 48), ("kda", 80, 48)):
                for part, bytes_of_three in (("conv", channels * (2 * 3 * (2 + 2 * 3) + 4 * 5)),
                                             ("gated_norm", inner * (3 * 2 * 3 + 4))):
                    with self.subTest(family=family, part=part):
                        done = self.bench(f"--family={family}", f"--part={part}", f"--json={path}")
                        self.assertEqual(done.returncode, 0, done.stderr)
                        found = json.loads(path.read_text())
                        self.assertEqual((found["family"], found["part"]), (family, part))
                        self.assertEqual([(row["batch"], row["tokens"]) for row in found["rows"]], [(1, 1), (3, 1)])
                        self.assertEqual(found["rows"][1]["bytes"], bytes_of_three)
                        for row in found["rows"]:
                            self.assertEqual(row["output_error"], 0.0)
                            self.assertTrue(0 < row["min"] <= row["microseconds"] <= row["max"])
        done = self.bench("--part=conv", "--block=5")
        self.assertEqual([line.split()[:2] for line in done.stdout.splitlines()[2:]], [["1", "5"], ["3", "5"]])

    def test_blocks_of_tokens(self):
        for family in ("mamba2", "gated_delta", "kda"):
            with self.subTest(family=family):
                done = self.bench(f"--family={family}", "--block=9")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("blocks of 9 tokens", done.stdout)
                self.assertIn("relative error at most 0\n", done.stdout)  # the timed kernels are the CPU's
        self.assertIn("--json excludes --block", self.bench("--block=9", "--json=bench.json").stderr)

    def test_refusals(self):
        for more, fragment in ((["--batch=0"], "--batch"), (["--family=mamba3"], "--family"),
                               (["--buffer-len=65"], "--buffer-len: Value 65 not in range 1 to 64"), (["--head-dim=12"], "head_dim")):
            with self.subTest(more=more):
                done = self.bench(*more)
                self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
                self.assertIn(fragment, done.stderr)
                self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
