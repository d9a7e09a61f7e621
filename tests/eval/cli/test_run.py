"""`replayeval run` as a whole: a tiny checkpoint, real files, all that can go wrong."""

import json
import os
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

CONFIG = """
name: tiny
seed: 7
checkpoint: checkpoint
baseline: exact
bootstrap_samples: 200
arms:
  - {name: exact, executor: exact, state_storage: float32}
  - {name: exact-again, executor: exact, state_storage: float32}
  - {name: exact-bf16, executor: exact, state_storage: bfloat16}
  - {name: replay, executor: replay, state_storage: float32, ring_storage: float32, buffer_len: 4}
  - {name: replay-sequential, executor: replay, state_storage: float32, ring_storage: float32, buffer_len: 4,
     route: state_and_output, flush: sequential}
  - {name: replay-bf16, executor: replay, state_storage: bfloat16, ring_storage: bfloat16, buffer_len: 4}
workloads:
  - name: text
    kind: perplexity
    sources: [{name: prose, path: "text/*.txt"}]
    context: 96
    stride: 48
    block: 40
    batch: 3
    mode: MODE
    position_buckets: [0, 32, 96]
    state_error: {sequences: 2, positions: [5, 40, 96], depths: [local, propagated, gold]}
"""


class RunTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = pathlib.Path(tempfile.mkdtemp(prefix="replayeval-run-"))
        tiny_checkpoint.make_checkpoint(cls.made / "checkpoint")
        (cls.made / "text").mkdir()
        for index, words in enumerate((300, 20, 150)):
            (cls.made / "text" / f"d{index}.txt").write_text(tiny_checkpoint.text(words, 100 + index))
        (cls.made / "config.yaml").write_text(CONFIG.replace("MODE", "teacher_forced"))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.made)

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="replayeval-run-"))
        self.addCleanup(shutil.rmtree, self.folder, True)

    def copy_of_everything(self):
        work = self.folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(self.made, work)
        return work

    def run_config(self, work=None, *more, output=None):
        work = work or self.made
        output = output or self.folder / "out"
        return program.call("run", work / "config.yaml", "--output", output, "--quiet", *more)

    def good(self, *arguments, **options):
        done = self.run_config(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def results(self, output=None):
        return json.loads(((output or self.folder / "out") / "results.json").read_text())

    def assert_refused(self, done, *fragments):
        """Exit code 3, one line on stderr that names what is wrong, nothing on stdout."""
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        for fragment in fragments:
            self.assertIn(fragment, done.stderr)

    def assert_nothing_half_written(self, output=None):
        output = output or self.folder / "out"
        self.assertFalse((output / "results.json").exists())
        self.assertEqual(list(output.rglob("*.part")) if output.exists() else [], [])


class Numbers(RunTest):
    def test_arms_deltas_and_files(self):
        self.good()
        results = self.results()
        workload = results["workloads"][0]
        again = workload["deltas"]["exact-again"]["mean_log_likelihood"]
        self.assertEqual(again["value"], 0)
        self.assertNotIn("low", again, "fewer than ten blocks, all alike")
        self.assertEqual(workload["divergence"]["exact-again"]["kl_max"]["value"], 0)
        self.assertEqual(workload["divergence"]["exact-again"]["same_top1"]["value"], 1)
        # A sequential flush of a float32 ring under state_and_output is the exact recurrence, bit for bit.
        self.assertEqual(workload["divergence"]["replay-sequential"]["kl_max"]["value"], 0)
        replay = workload["deltas"]["replay"]["perplexity_relative"]["value"]
        self.assertLess(abs(replay), 1e-5)
        self.assertGreater(workload["divergence"]["replay"]["kl_max"]["value"], 0)
        self.assertGreater(workload["divergence"]["exact-bf16"]["kl_mean"]["value"],
                           100 * workload["divergence"]["replay"]["kl_mean"]["value"])
        self.assertFalse((self.folder / "out" / "progress").exists())
        self.assertIn("exact-bf16", (self.folder / "out" / "report.md").read_text())

    def test_token_files_agree_with_the_results(self):
        self.good()
        workload = self.results()["workloads"][0]
        tokens = self.folder / "out" / "tokens"
        index = numpy.load(tokens / "text.index.npy")
        self.assertEqual(len(index), workload["data"]["tokens_scored"])
        # Every token of every document is predicted once (a BOS stands before the first).
        documents = json.loads((tokens / "text.documents.json").read_text())
        for number, document in enumerate(documents):
            positions = index[index[:, 0] == number][:, 1]
            self.assertEqual(positions.tolist(), list(range(1, document["tokens"] + 1)))
        for arm in ("exact", "replay-bf16"):
            log_prob = numpy.load(tokens / f"text.{arm}.npy")
            self.assertEqual(log_prob.dtype, numpy.float64)
            self.assertAlmostEqual(float(numpy.exp(-log_prob.mean())),
                                   workload["arms"][arm]["metrics"]["perplexity"]["value"], places=9)
        difference = numpy.load(tokens / "text.replay-bf16.npy") - numpy.load(tokens / "text.exact.npy")
        self.assertAlmostEqual(float(difference.mean()),
                               workload["deltas"]["replay-bf16"]["mean_log_likelihood"]["value"], places=12)

    def test_log_probabilities_are_those_of_the_logits_command(self):
        self.good()
        tokens = self.folder / "out" / "tokens"
        index = numpy.load(tokens / "text.index.npy")
        log_prob = numpy.load(tokens / "text.exact.npy")
        first = index[(index[:, 0] == 1)]  # a document that fits one window
        self.assertLess(len(first), 96 + 1)
        ids = self.folder / "ids.json"
        ids.write_text(json.dumps([1, *first[:, 3].tolist()]))
        out = self.folder / "logits.npy"
        done = program.call("logits", self.made / "checkpoint", "--ids", ids, "--mode", "stepwise", "--out", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        logits = numpy.load(out).astype(numpy.float64)[:-1]
        expected = logits - numpy.log(numpy.exp(logits - logits.max(1, keepdims=True)).sum(1, keepdims=True)) \
            - logits.max(1, keepdims=True)
        got = expected[numpy.arange(len(first)), first[:, 3]]
        numpy.testing.assert_allclose(log_prob[index[:, 0] == 1], got, atol=2e-4)

    def test_stepwise_and_teacher_forced_agree_to_rounding(self):
        work = self.copy_of_everything()
        (work / "config.yaml").write_text(CONFIG.replace("MODE", "stepwise"))
        self.good(work, output=self.folder / "stepwise")
        self.good()
        for arm in ("exact", "replay", "replay-bf16"):
            a = numpy.load(self.folder / "out" / "tokens" / f"text.{arm}.npy")
            b = numpy.load(self.folder / "stepwise" / "tokens" / f"text.{arm}.npy")
            numpy.testing.assert_allclose(a, b, atol=2e-2 if "bf16" in arm else 1e-4)
        self.assertEqual(self.results(self.folder / "stepwise")["workloads"][0]["data"]["mode"], "stepwise")

    def test_state_errors(self):
        self.good()
        rows = self.results()["workloads"][0]["state_errors"]
        self.assertEqual(len(rows), 6 * 3 * 2 * 3)
        worst = {}
        for row in rows:
            key = (row["arm"], row["depth"])
            worst[key] = max(worst.get(key, 0), row["relative_frobenius"])
        self.assertEqual(worst["exact-again", "propagated"], 0)
        self.assertLess(worst["replay", "gold"], 1e-5)
        self.assertGreater(worst["exact-bf16", "gold"], 1e-4)


class Resuming(RunTest):
    def test_a_complete_run_prints_the_same_table_at_once(self):
        first = self.good()
        before = (self.folder / "out" / "results.json").read_bytes()
        second = self.good()
        self.assertEqual(first.stdout, second.stdout)
        self.assertEqual(before, (self.folder / "out" / "results.json").read_bytes())

    def test_an_interrupted_run_goes_on_to_the_same_numbers(self):
        work = self.copy_of_everything()
        (work / "text" / "long.txt").write_text(tiny_checkpoint.text(6000, 55))
        (work / "config.yaml").write_text(CONFIG.replace("MODE", "stepwise").replace("context: 96", "context: 128")
                                          .replace(", 96]\n    state", ", 128]\n    state"))
        output = self.folder / "interrupted"
        command = [program.program(), "run", str(work / "config.yaml"), "--output", str(output), "--quiet"]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        shards = output / "progress" / "text"
        deadline = time.time() + 120
        while len(list(shards.glob("*.json")) if shards.exists() else []) < 2 and time.time() < deadline:
            self.assertIsNone(running.poll(), "the run ended before it could be interrupted")
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=120)
        self.assertEqual(running.returncode, 130, errors)
        self.assertRegex(errors, r"^replayeval: stopped; kept: \d+ finished parts of 'text'; the same command goes on from there\n$")
        self.assertFalse((output / "results.json").exists())
        stamps = {path: path.stat().st_mtime_ns for path in shards.glob("*.json")}
        self.assertGreaterEqual(len(stamps), 2)
        self.good(work, output=output)
        self.good(work, output=self.folder / "undisturbed")
        a, b = self.results(output)["workloads"][0], self.results(self.folder / "undisturbed")["workloads"][0]
        for part in ("deltas", "divergence", "positions", "state_errors", "storage_counts"):
            self.assertEqual(a[part], b[part], part)

    def test_damaged_shards_are_named_and_computed_again(self):
        work = self.copy_of_everything()
        second = CONFIG.split("workloads:\n")[1].replace("name: text", "name: more")
        (work / "config.yaml").write_text((CONFIG + second).replace("MODE", "teacher_forced"))
        self.good(work, "--only", "text")  # the shards stay as long as there is work left
        expected = self.results()["workloads"][0]
        shards = self.folder / "out" / "progress" / "text"

        def flip(file):
            content = bytearray(file.read_bytes())
            content[len(content) // 2] ^= 0x40
            file.write_bytes(content)

        for name, damage in (("000000.npy", flip), ("000000.json", flip), ("000000.npy", pathlib.Path.unlink)):
            with self.subTest(name=name, damage=damage):
                (self.folder / "out" / "results.json").unlink()
                damage(shards / name)
                whole = (shards / "000001.npy").stat().st_mtime_ns
                done = self.good(work, "--only", "text")
                self.assertRegex(done.stderr, rf"^replayeval: warning: \S*/progress/text/{name}: .*"
                                 r"; this part is computed again\n$")
                self.assertEqual(whole, (shards / "000001.npy").stat().st_mtime_ns)
                for part in ("deltas", "divergence", "positions", "state_errors", "storage_counts"):
                    self.assertEqual(self.results()["workloads"][0][part], expected[part], part)
        (self.folder / "out" / "results.json").unlink()
        self.assertEqual(self.good(work, "--only", "text").stderr, "")

    def test_a_report_that_was_not_written_is_made_up_for(self):
        self.good()
        for report in (self.folder / "out" / "report.md", self.folder / "out" / "report.html"):
            with self.subTest(report.name):
                written = report.read_text()
                report.unlink()
                self.good()
                self.assertEqual(report.read_text(), written)
                report.write_text("of fewer workloads")
                os.utime(report, (1, 1))
                self.good()
                self.assertEqual(report.read_text(), written)

    def test_another_config_is_refused_and_overwrite_starts_anew(self):
        self.good()
        work = self.copy_of_everything()
        config = (work / "config.yaml").read_text().replace("seed: 7", "seed: 8")
        (work / "config.yaml").write_text(config)
        before = (self.folder / "out" / "results.json").read_bytes()
        self.assert_refused(self.run_config(work), "holds another run", "/config/seed is 7 there and 8 here", "--overwrite")
        self.assertEqual(before, (self.folder / "out" / "results.json").read_bytes())
        self.good(work, "--overwrite")
        self.assertEqual(self.results()["config"]["seed"], 8)

    def test_changed_text_is_another_run(self):
        work = self.copy_of_everything()
        self.good(work)
        with (work / "text" / "d0.txt").open("a") as file:
            file.write(" one more line.")
        self.assert_refused(self.run_config(work), "holds another run", "sha256")

    def test_only_runs_a_part_and_the_rest_follows(self):
        work = self.copy_of_everything()
        second = CONFIG.split("workloads:\n")[1].replace("name: text", "name: more").replace("stride: 48", "stride: 96")
        (work / "config.yaml").write_text((CONFIG + second).replace("MODE", "teacher_forced"))
        self.good(work, "--only", "more")
        self.assertEqual([w["name"] for w in self.results()["workloads"]], ["more"])
        self.good(work)
        self.assertEqual([w["name"] for w in self.results()["workloads"]], ["text", "more"])
        self.assert_refused(self.run_config(work, "--only", "nothing"), "no workload is named 'nothing'", "text, more")

    def test_results_of_another_revision_are_said_to_be_so(self):
        self.assertNotIn("was computed by", self.good().stderr)
        results = self.results()
        results["tool"]["git"] = "0123456789ab"
        (self.folder / "out" / "results.json").write_text(json.dumps(results))
        done = self.good()
        self.assertIn("was computed by 0123456789ab; this program is", done.stderr)
        self.assertIn("--overwrite", done.stderr)
        self.assertNotIn("was computed by", self.good(None, "--overwrite").stderr)

    def test_unfinished_work_of_another_revision_is_refused(self):
        work = self.copy_of_everything()
        second = CONFIG.split("workloads:\n")[1].replace("name: text", "name: more")
        (work / "config.yaml").write_text((CONFIG + second).replace("MODE", "teacher_forced"))
        self.good(work, "--only", "text")
        identity = self.folder / "out" / "identity.json"
        stored = json.loads(identity.read_text())
        stored["revision"] = "0123456789ab"
        identity.write_text(json.dumps(stored))
        before = (self.folder / "out" / "results.json").read_bytes()
        self.assert_refused(self.run_config(work), "holds unfinished work of 0123456789ab", "--overwrite")
        self.assertEqual(before, (self.folder / "out" / "results.json").read_bytes())
        self.good(work, "--overwrite")

    def test_a_resumed_run_says_where_it_goes_on(self):
        work = self.copy_of_everything()
        second = CONFIG.split("workloads:\n")[1].replace("name: text", "name: more")
        (work / "config.yaml").write_text((CONFIG + second).replace("MODE", "teacher_forced"))
        output = self.folder / "out"
        command = ("run", work / "config.yaml", "--output", output, "--only", "text")
        first = program.call(*command)
        self.assertIn("\ntext: 0 %\n", "\n" + first.stderr)
        (output / "results.json").unlink()
        last = max((output / "progress" / "text").glob("*.json"))
        last.unlink()
        again = program.call(*command)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertRegex("\n" + again.stderr, r"\ntext: goes on at [1-9][0-9]? %\n")
        self.assertNotIn("text: 0 %", again.stderr)

    def test_output_that_cannot_be_written(self):
        self.good()
        with open("/dev/full", "w") as full:
            done = program.call("run", self.made / "config.yaml", "--output", self.folder / "out", "--quiet",
                                stdout=full)
            self.assertEqual((done.returncode, done.stderr),
                             (3, "replayeval: standard output: cannot be written: No space left on device\n"))
            done = program.call("inspect", self.made / "checkpoint", stdout=full)
            self.assertEqual((done.returncode, done.stderr),
                             (3, "replayeval: standard output: cannot be written: No space left on device\n"))

    def test_json_is_the_results_file(self):
        done = self.good(None, "--json")
        self.assertEqual(json.loads(done.stdout), self.results())


class BadInput(RunTest):
    def spoil_config(self, old, new):
        work = self.copy_of_everything()
        text = (work / "config.yaml").read_text()
        self.assertIn(old, text)
        (work / "config.yaml").write_text(text.replace(old, new, 1))
        return work

    def spoil_checkpoint(self, change):
        work = self.copy_of_everything()
        shutil.rmtree(work / "checkpoint")
        tiny_checkpoint.make_checkpoint(work / "checkpoint", change)
        return work

    def test_configs(self):
        for old, new, fragments in (
            ("buffer_len: 4", "buffer_len: 0", ("buffer_len", "1")),
            ("ring_storage: float32", "ring_storage: float8", ("float8", "bfloat16")),
            ("flush: sequential", "flush: sequential, ring_form: deltas", ("deltas",)),
            ("baseline: exact", "baseline: nobody", ("nobody",)),
            ("context: 96", "contxt: 96", ("contxt",)),
            ("checkpoint: checkpoint", "checkpoint: elsewhere", ("elsewhere",)),
            ("name: exact-again", "name: exact", ("exact",)),
            ("name: exact-again", "name: index", ("config.yaml", "tokens/text.index.npy")),
            ("text/*.txt", "text/*.md", ("text/*.md",)),
        ):
            with self.subTest(new):
                work = self.spoil_config(old, new)
                self.assert_refused(self.run_config(work), *fragments)
                self.assert_nothing_half_written()
                shutil.rmtree(work)

    def test_state_errors_beyond_every_window(self):
        work = self.spoil_config("context: 96", "context: 5000")
        text = (work / "config.yaml").read_text()
        (work / "config.yaml").write_text(text.replace("positions: [5, 40, 96]", "positions: [5, 5000]"))
        self.assert_refused(self.run_config(work), "config.yaml: workload 'text': state_error", "position 5000",
                            "the longest window has")
        self.assertFalse((self.folder / "out" / "progress").exists(), "nothing is decoded before that is known")
        self.assert_nothing_half_written()

    def test_a_separator_that_backtracks_without_end(self):
        work = self.spoil_config('path: "text/*.txt"', 'path: "text/*.txt", separator: "([a-z.]+ ?)+[!?]"')
        self.assert_refused(self.run_config(work), "d0.txt: line 1: separator '", "config.yaml:", "limit exceeded")
        self.assert_nothing_half_written()

    def test_folders_where_files_belong(self):
        for name in ("config.json", "tokenizer.model", "model.safetensors.index.json",
                     "model-00002-of-00002.safetensors"):
            with self.subTest(name):
                work = self.copy_of_everything()
                file = work / "checkpoint" / name
                file.unlink()
                file.mkdir()
                self.assert_refused(self.run_config(work), f"{file}: ", "folder", "expected")
                self.assert_nothing_half_written()
        self.assert_refused(program.call("run", self.folder), f"{self.folder}: is a folder; expected a YAML file")

    def test_missing_config(self):
        self.assert_refused(program.call("run", self.folder / "none.yaml"), "none.yaml")

    def test_a_path_is_looked_for_twice_only_in_two_places(self):
        work = self.spoil_config("checkpoint: checkpoint", "checkpoint: elsewhere")
        self.assert_refused(program.call("run", "config.yaml", cwd=work), "expected an existing folder; 'elsewhere' is not there")

    def test_what_fails_before_any_work_leaves_no_folder(self):
        output = self.folder / "out"
        work = self.spoil_config("flush: sequential", "flush: summed, ring_form: deltas")
        done = program.call("run", work / "config.yaml", "--output", output)
        self.assert_refused(done, "config.yaml:13:57: key 'ring_form': arm 'replay-sequential' has deltas; expected inputs")
        self.assertFalse(output.exists())

        def nan(_, weights):
            weights["lm_head.weight"][2, 1] = numpy.nan

        work = self.spoil_checkpoint(nan)
        self.assert_refused(self.run_config(work), "lm_head.weight")
        self.assertFalse(output.exists())

    def test_overwrite_keeps_the_old_results_until_the_model_loads(self):
        self.good()
        before = (self.folder / "out" / "results.json").read_bytes()

        def nan(_, weights):
            weights["lm_head.weight"][2, 1] = numpy.nan

        self.assert_refused(self.run_config(self.spoil_checkpoint(nan), "--overwrite"), "lm_head.weight")
        self.assertEqual(before, (self.folder / "out" / "results.json").read_bytes())

    def test_text_that_is_empty_or_not_utf8(self):
        for content, fragments in ((b"", ("d1.txt", "empty")), (b"good \xff bad", ("d1.txt", "5", "UTF-8"))):
            work = self.copy_of_everything()
            (work / "text" / "d1.txt").write_bytes(content)
            self.assert_refused(self.run_config(work), *fragments)
            self.assert_nothing_half_written()
            shutil.rmtree(work)

    def test_checkpoints(self):
        def nan(_, weights):
            weights["backbone.layers.3.mixer.out_proj.weight"][2, 1] = numpy.nan

        def missing(_, weights):
            del weights["backbone.layers.1.mixer.up_proj.weight"]

        def misshapen(_, weights):
            weights["backbone.norm_f.weight"] = weights["backbone.norm_f.weight"][:-1]

        def unknown_key(config, _):
            config["surprise_factor"] = 3

        def unknown_type(config, _):
            config["model_type"] = "nemotron_z"

        for change, fragments in (
            (nan, ("backbone.layers.3.mixer.out_proj.weight", "safetensors")),
            (missing, ("backbone.layers.1.mixer.up_proj.weight",)),
            (misshapen, ("backbone.norm_f.weight", "40", "39")),
            (unknown_key, ("config.json", "surprise_factor")),
            (unknown_type, ("config.json", "nemotron_z", "nemotron_h")),
        ):
            with self.subTest(change.__name__):
                work = self.spoil_checkpoint(change)
                self.assert_refused(self.run_config(work), *fragments)
                self.assert_nothing_half_written()
                shutil.rmtree(work)

    def test_a_missing_and_a_truncated_shard(self):
        work = self.copy_of_everything()
        shard = work / "checkpoint" / "model-00002-of-00002.safetensors"
        content = shard.read_bytes()
        shard.write_bytes(content[:-100])
        self.assert_refused(self.run_config(work), "model-00002-of-00002.safetensors")
        shard.unlink()
        self.assert_refused(self.run_config(work), "model-00002-of-00002.safetensors")
        self.assert_nothing_half_written()

    def test_logits_that_overflow_are_named_not_averaged(self):
        def overflow(_, weights):
            weights["lm_head.weight"] *= numpy.float32(3e38)
            numpy.clip(weights["lm_head.weight"], -3e38, 3e38, out=weights["lm_head.weight"])

        work = self.spoil_checkpoint(overflow)
        self.assert_refused(self.run_config(work), "workload 'text'", "document 0 ('d0' of source 'prose')", "arm")
        self.assert_nothing_half_written()

    def test_a_tokenizer_larger_than_the_vocabulary(self):
        def smaller(config, weights):
            config["vocab_size"] = 256
            weights["backbone.embeddings.weight"] = weights["backbone.embeddings.weight"][:256]
            weights["lm_head.weight"] = weights["lm_head.weight"][:256]

        work = self.spoil_checkpoint(smaller)
        self.assert_refused(self.run_config(work), "256")
        self.assert_nothing_half_written()

    def test_output_folders_that_cannot_be(self):
        (self.folder / "file").write_text("x")
        self.assert_refused(self.run_config(output=self.folder / "file"), "is a file")
        self.assert_refused(self.run_config(output=self.folder / "file" / "below"), "cannot be created")
        (self.folder / "mine").mkdir()
        (self.folder / "mine" / "thesis.tex").write_text("x")
        self.assert_refused(self.run_config(output=self.folder / "mine"), "holds files that no run wrote")
        self.assertEqual([p.name for p in (self.folder / "mine").iterdir()], ["thesis.tex"])
        self.assert_refused(program.call("run", self.made / "config.yaml", "--output", ""), "--output", "empty")

    def test_a_full_disk(self):
        # /dev/full cannot hold a folder; a size limit on files stands in for a disk that fills up.
        command = ["bash", "-c", 'ulimit -f 8; trap "" XFSZ; exec "$@"', "run", program.program(), "run",
                   str(self.made / "config.yaml"), "--output", str(self.folder / "out"), "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        self.assert_refused(done, "cannot be written")
        self.assert_nothing_half_written()
        self.good()  # and the folder can be used again

    def test_usage(self):
        for arguments, fragments in (
            (["run"], ("config", "replayeval run --help")),
            (["walk"], ("found 'walk', expected a command: run, report", "replayeval --help")),
            (["bench", "walk"], ("found 'walk', expected a command: kernels, model", "replayeval bench --help")),
            (["bench"], ("replayeval bench --help",)),
            (["run", "a.yaml", "--device", "tpu"], ("--device", "tpu", "{cpu,cuda}")),
            ([], ("replayeval --help",)),
        ):
            with self.subTest(arguments):
                self.assert_refused(program.call(*arguments), *fragments)
        self.assertEqual(program.call("--help").returncode, 0)
        self.assertEqual(program.call("run", "--help").returncode, 0)


if __name__ == "__main__":
    unittest.main()
