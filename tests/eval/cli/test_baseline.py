"""Portable baselines: `run --save-baseline`, and later runs `--against` one, by another program that has only the folder."""

import json
import pathlib
import shutil
import sys
import tempfile
import unittest

import numpy
import safetensors.numpy

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import program  # noqa: E402
import tiny_checkpoint  # noqa: E402

CONFIG = """
name: tiny
checkpoint: checkpoint
baseline: exact
bootstrap_samples: 100
arms:
  - {name: exact, executor: exact, state_storage: float32}
  - {name: replay-bf16, executor: replay, state_storage: STATE, ring_storage: bfloat16, buffer_len: 4}
workloads:
"""
WORKLOAD = ('  - {name: NAME, kind: perplexity, sources: [{name: prose, path: "text/*.txt"}], context: 96, stride: 48, '
            'block: 40, batch: 3}\n')


def config(*workloads, state="bfloat16", text=CONFIG):
    return text.replace("STATE", state) + "".join(WORKLOAD.replace("NAME", name) for name in workloads)


def shard_with(tensor, checkpoint):
    """The file that holds the tensor, and all that it holds."""
    for file in checkpoint.glob("*.safetensors"):
        tensors = safetensors.numpy.load_file(file)
        if tensor in tensors:
            return file, tensors
    raise KeyError(tensor)


class Baseline(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = pathlib.Path(tempfile.mkdtemp(prefix="replayeval-baseline-"))
        tiny_checkpoint.make_checkpoint(cls.made / "checkpoint")
        (cls.made / "text").mkdir()
        for index, words in enumerate((200, 20, 150)):
            (cls.made / "text" / f"d{index}.txt").write_text(tiny_checkpoint.text(words, 100 + index))
        (cls.made / "config.yaml").write_text(config("text"))
        done = cls.call(cls.made, "release", "--save-baseline", "hidden")
        assert done.returncode == 0, done.stderr
        cls.release, cls.said = cls.made / "release" / "baseline", done.stderr

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.made)

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="replayeval-baseline-"))
        self.addCleanup(shutil.rmtree, self.folder, True)

    @staticmethod
    def call(work, output, *more):
        return program.call("run", work / "config.yaml", "--output", work / output, "--quiet", *more)

    def copy(self, text=None):
        work = self.folder / "work"
        shutil.rmtree(work, True)
        shutil.copytree(self.made, work)
        if text:
            (work / "config.yaml").write_text(text)
        return work

    def good(self, *arguments):
        done = self.call(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def workload(self, folder):
        return json.loads((folder / "results.json").read_text())["workloads"][0]

    def refused(self, done, *fragments):
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "")
        lines = [line for line in done.stderr.strip().splitlines() if "the baseline that is kept" not in line]
        self.assertEqual(len(lines), 1, done.stderr)
        for fragment in fragments:
            self.assertIn(fragment, lines[0])

    def test_the_file_holds_what_was_scored_and_the_size_was_said(self):
        kept = safetensors.numpy.load_file(self.release / "text.safetensors")
        tokens = self.made / "release" / "tokens"
        numpy.testing.assert_array_equal(kept["index"], numpy.load(tokens / "text.index.npy"))
        for arm, name in enumerate(("exact", "replay-bf16")):
            numpy.testing.assert_array_equal(kept["log_probs"][:, arm], numpy.load(tokens / f"text.{name}.npy"))
        count = len(kept["index"])
        self.assertEqual(kept["hidden"].shape, (count, 2, tiny_checkpoint.CONFIG["hidden_size"]))
        # A head of the reader's own makes the stored log-probabilities of the hidden states.
        head = shard_with("lm_head.weight", self.made / "checkpoint")[1]["lm_head.weight"].astype(numpy.float64)
        logits = kept["hidden"].astype(numpy.float64) @ head.T
        logits -= logits.max(-1, keepdims=True)
        log_probs = logits - numpy.log(numpy.exp(logits).sum(-1, keepdims=True))
        of_target = numpy.take_along_axis(log_probs, kept["index"][:, 3][:, None, None].repeat(2, 1), 2)[..., 0]
        numpy.testing.assert_allclose(of_target, kept["log_probs"], atol=1e-5)
        self.assertIn(f"{count:,} tokens of 2 arms, float32 hidden states of 40 numbers", self.said)

    def test_the_same_program_differs_in_nothing(self):
        work = self.copy()
        done = self.good(work, "again", "--against", self.release)
        workload = self.workload(work / "again")
        self.assertEqual([row["stored_arm"] for row in workload["against"]], ["exact", "replay-bf16"])
        for row in workload["against"]:
            delta = row["deltas"]["perplexity_relative"]
            self.assertEqual(delta["value"], 0)
            self.assertNotIn("low", delta, "fewer than ten blocks, all alike")
            self.assertEqual(row["divergence"]["kl_max"]["value"], 0)
            self.assertEqual(row["divergence"]["same_top1"]["value"], 1)
        self.assertEqual(workload["data"]["against"]["log_prob_max_difference"], 0)
        self.assertIn("Against the stored baseline", done.stdout)
        self.assertIn("### Against the stored baseline", (work / "again" / "report.md").read_text())
        # What else the run says is as it would be alone.
        for part in ("deltas", "divergence", "positions"):
            self.assertEqual(workload[part], self.workload(self.made / "release")[part])

    def test_a_change_of_an_arm_is_measured_as_it_would_be_side_by_side(self):
        beside = CONFIG.replace("workloads:", "  - {name: narrow, executor: exact, state_storage: bfloat16}\nworkloads:")
        work = self.copy(config("text", text=beside))
        self.good(work, "both")
        expected = self.workload(work / "both")
        changed = CONFIG.replace("executor: exact, state_storage: float32", "executor: exact, state_storage: bfloat16")
        (work / "config.yaml").write_text(config("text", text=changed))
        self.good(work, "changed", "--against", self.release)
        row = self.workload(work / "changed")["against"][0]
        self.assertGreater(row["divergence"]["kl_mean"]["value"], 0)
        for metric in ("kl_mean", "kl_max", "dp_rms"):
            measured, reference = row["divergence"][metric]["value"], expected["divergence"]["narrow"][metric]["value"]
            self.assertAlmostEqual(measured / reference, 1, places=5, msg=metric)
        self.assertAlmostEqual(row["deltas"]["perplexity_relative"]["value"],
                               expected["deltas"]["narrow"]["perplexity_relative"]["value"], places=12)

    def test_narrow_hidden_states_say_what_rounding_them_costs(self):
        work = self.copy()
        self.good(work, "kept", "--save-baseline", "hidden", "--baseline-dtype", "bfloat16", "--baseline-arms", "exact")
        size = (work / "kept" / "baseline" / "text.safetensors").stat().st_size
        self.assertLess(size, 0.4 * (self.release / "text.safetensors").stat().st_size)
        done = self.good(work, "compared", "--against", work / "kept" / "baseline")
        workload = self.workload(work / "compared")
        self.assertEqual([row["stored_arm"] for row in workload["against"]], ["exact", "exact"])
        self.assertTrue(0 < workload["against"][0]["divergence"]["kl_mean"]["value"] < 1e-4)
        self.assertTrue(0 < workload["data"]["against"]["log_prob_max_difference"] < 0.1)
        self.assertIn("Log-probabilities from the stored hidden states are within", " ".join(done.stdout.split()))

    def test_log_probabilities_alone(self):
        work = self.copy()
        self.good(work, "kept", "--save-baseline", "log_probs")
        kept = work / "kept" / "baseline"
        self.assertEqual(set(safetensors.numpy.load_file(kept / "text.safetensors")), {"index", "log_probs"})
        self.good(work, "same", "--against", kept)
        (work / "config.yaml").write_text(config("text", state="float16"))
        self.good(work, "changed", "--against", kept)
        for folder, unchanged in (("same", True), ("changed", False)):
            exact, replay = self.workload(work / folder)["against"]
            self.assertEqual(exact["deltas"]["mean_log_likelihood"]["value"], 0)
            self.assertEqual(replay["deltas"]["mean_log_likelihood"]["value"] == 0, unchanged)
            self.assertEqual(replay["divergence"], {})

    def test_goes_on_where_it_stopped(self):
        work = self.copy(config("text", "more"))
        self.good(work, "out", "--only", "text", "--save-baseline", "hidden")
        whole = (work / "out" / "baseline" / "text.safetensors").read_bytes()
        rows = sorted((work / "out" / "progress" / "text").glob("*.hidden"))
        self.assertGreater(len(rows), 2)
        # Of the shards one is whole, one's hidden states are damaged, one's are gone; results and baseline are not there yet.
        untouched = rows[0].stat().st_mtime_ns
        rows[1].write_bytes(rows[1].read_bytes()[:-1] + b"\x55")
        rows[2].unlink()
        (work / "out" / "results.json").unlink()
        shutil.rmtree(work / "out" / "baseline")
        self.good(work, "out", "--only", "text", "--save-baseline", "hidden")
        self.assertEqual((work / "out" / "baseline" / "text.safetensors").read_bytes(), whole)
        self.assertEqual(rows[0].stat().st_mtime_ns, untouched)
        self.good(work, "out", "--save-baseline", "hidden")
        description = json.loads((work / "out" / "baseline" / "baseline.json").read_text())
        self.assertEqual(sorted(description["workloads"]), ["more", "text"])
        self.good(work, "out", "--save-baseline", "hidden")  # complete: prints its table
        self.refused(self.call(work, "out", "--save-baseline", "log_probs"), "not the baseline asked for", "--overwrite")
        self.good(work, "out", "--overwrite", "--save-baseline", "log_probs")

    def test_going_on_without_it_says_that_none_is_kept(self):
        work = self.copy(config("text", "more"))
        self.good(work, "out", "--only", "text", "--save-baseline", "hidden")
        said = self.good(work, "out").stderr
        self.assertIn("was begun with --save-baseline; without it no baseline is kept of workload 'more'", said)
        self.assertNotIn("'text'", said)
        self.assertNotIn("no baseline", self.good(work, "alone").stderr)

    def test_other_text_windows_or_workloads_are_refused(self):
        work = self.copy()
        (work / "text" / "d1.txt").write_text("something else altogether")
        self.refused(self.call(work, "out", "--against", self.release), "baseline.json", "'text'", "sha256")
        work = self.copy(config("text").replace("context: 96", "context: 90"))
        self.refused(self.call(work, "out", "--against", self.release), "context is 96", "expected this run's, 90")
        work = self.copy(config("text").replace("context: 96", "prompt: prefill, prefill_tokens: 8, context: 96"))
        self.refused(self.call(work, "out", "--against", self.release), "'text'", "tokens; expected")
        work = self.copy(config("other"))
        self.refused(self.call(work, "out", "--against", self.release), "no workload 'other'", "there are: text")
        # The first is there: the second is missed before the first is computed.
        work = self.copy(config("text", "other"))
        done = self.call(work, "out", "--against", self.release)
        self.refused(done, "no workload 'other'", "there are: text")
        self.assertFalse((work / "out").exists())
        self.good(work, "out", "--only", "text", "--against", self.release)

    def test_another_head_is_refused_and_another_body_is_not(self):
        for tensor, is_head in (("lm_head.weight", True), ("backbone.layers.1.mixer.up_proj.weight", False)):
            work = self.copy()
            file, tensors = shard_with(tensor, work / "checkpoint")
            tensors[tensor][0, 0] += 0.5
            safetensors.numpy.save_file(tensors, file)
            done = self.call(work, "out", "--against", self.release)
            if is_head:
                self.refused(done, "head_sha256", "log_probs can be compared instead")
            else:
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertGreater(self.workload(work / "out")["against"][0]["divergence"]["kl_mean"]["value"], 0)

    def test_damaged_baselines_are_named(self):
        work = self.copy()
        kept = work / "release" / "baseline"
        file, description = kept / "text.safetensors", kept / "baseline.json"
        data, text = file.read_bytes(), description.read_text()

        def refused(*fragments):
            self.refused(self.call(work, "out", "--against", kept), *fragments)
            self.assertFalse((work / "out").exists())

        file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        refused("text.safetensors", "SHA-256")
        file.unlink()
        refused("text.safetensors")
        file.write_bytes(data)
        for was, becomes, *fragments in (
                ('"format_version": 1', '"format_version": 2', "format_version 2", "reads 1"),
                ('"form": "hidden"', '"form": "pickled"', "'pickled'", "hidden or log_probs"),
                ('"hidden_size": 40', '"hidden_size": 41', "hidden_size 41", "40"),
                ('{', '[', "not a JSON object")):
            self.assertIn(was, text)
            description.write_text(text.replace(was, becomes, 1))
            refused("baseline.json", *fragments)
        self.refused(self.call(work, "out", "--against", work / "release"), "cannot be read", f"such as {kept}")
        description.unlink()
        refused("baseline.json", "cannot be read", "--save-baseline")

    def test_options_that_make_no_sense(self):
        for options, fragment in (((("--save-baseline", "everything")), "everything"),
                                  (("--baseline-dtype", "bfloat16"), "--save-baseline"),
                                  (("--save-baseline", "log_probs", "--baseline-dtype", "bfloat16"), "--baseline-dtype"),
                                  (("--against", ""), "--against: empty; expected a folder"),
                                  (("--save-baseline", "hidden", "--baseline-arms", "exact,none"), "'none'")):
            done = self.call(self.copy(), "out", *options)
            self.assertEqual(done.returncode, 3)
            self.assertIn(fragment, done.stderr)


if __name__ == "__main__":
    unittest.main()
