"""`replayeval inspect` and `replayeval logits` as commands: what they print, and what they do with bad input.

    REPLAYEVAL=build/cpu/bin/replayeval python3 -m unittest tests/eval/model/test_inspect_and_logits.py
"""

import json
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from safetensors.torch import load_file, save_file
from transformers import NemotronHConfig, NemotronHForCausalLM

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import nemotron_h_cases as nemotron_h  # noqa: E402
import parity  # noqa: E402


def run(*arguments):
    return subprocess.run([parity.PROGRAM, *map(str, arguments)], capture_output=True, text=True)


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.shared.cleanup)
        cls.original = pathlib.Path(cls.shared.name) / "checkpoint"
        case = nemotron_h.CASES["wide_state"]
        model = parity.build_model(NemotronHConfig, NemotronHForCausalLM, case, nemotron_h.BASE)
        cls.model = parity.save_model(model, case, cls.original)

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.checkpoint = self.folder / "checkpoint"
        shutil.copytree(self.original, self.checkpoint)
        self.ids = self.folder / "ids.json"
        self.out = self.folder / "out" / "logits.npy"
        self.out.parent.mkdir()
        parity.write_ids(self.ids, [1, 2, 3, 4, 5])

    def logits(self, *options):
        return run("logits", self.checkpoint, "--ids", self.ids, "--out", self.out, *options)

    def assert_refused(self, done, *parts):
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for part in parts:
            self.assertIn(str(part), done.stderr)
        self.assertEqual(list(self.out.parent.iterdir()), [], "something was written")

    def test_every_kind_of_arm_runs(self):
        for options in (["--executor", "exact", "--state-dtype", "bfloat16"],
                        ["--executor", "replay", "--state-dtype", "float16", "--state-overflow", "saturate",
                         "--buffer-len", "3", "--ring-dtype", "bfloat16", "--route", "state_and_output",
                         "--flush", "sequential", "--mode", "stepwise"],
                        ["--compute-dtype", "bfloat16"]):
            done = self.logits(*options)
            self.assertEqual(done.returncode, 0, done.stderr)
            logits = np.load(self.out)
            self.assertEqual((logits.shape, logits.dtype), ((5, 211), np.float32))
            self.assertTrue(np.isfinite(logits).all())

    def test_storage_options_reach_the_arm(self):
        """Each option that rounds must change the logits, or it was dropped on the way."""
        parity.write_ids(self.ids, [7 * i % 211 for i in range(20)])
        seen = {}
        for name, options in {
            "exact": [],
            "state": ["--state-dtype", "bfloat16"],
            "replay": ["--executor", "replay", "--buffer-len", "4"],
            "ring": ["--executor", "replay", "--buffer-len", "4", "--ring-dtype", "bfloat16"],
            "length": ["--executor", "replay", "--buffer-len", "5", "--ring-dtype", "bfloat16"],
            "route": ["--executor", "replay", "--buffer-len", "4", "--ring-dtype", "bfloat16",
                      "--route", "state_and_output"],
            "flush": ["--executor", "replay", "--buffer-len", "4", "--flush", "sequential"],
        }.items():
            self.assertEqual(self.logits(*options).returncode, 0)
            seen[name] = np.load(self.out).tobytes()
        self.assertEqual(len(set(seen.values())), len(seen))

    def test_bad_ids(self):
        for text, parts in {
            "": ["not valid JSON"],
            "{}": ["expected a JSON list"],
            "[]": ["empty list"],
            "[1, 2.5]": ["token 1 is 2.5"],
            "[1, \"2\"]": ["token 1 is \"2\""],
            "[[1, 2]]": ["token 0 is [1,2]"],
            "[0, 211]": ["token 1 is 211", "0 to 210", "vocabulary of 211"],
            "[0, 1, -1]": ["token 2 is -1"],
            "[18446744073709551615]": ["token 0"],
        }.items():
            self.ids.write_text(text)
            self.assert_refused(self.logits(), self.ids, *parts)
        self.ids.unlink()
        self.assert_refused(self.logits(), self.ids, "cannot be opened")

    def test_bad_arms_and_words(self):
        replay = ["--executor", "replay"]
        self.assert_refused(self.logits(*replay, "--buffer-len", "0"), "--buffer-len", "0", "1", "64")
        self.assert_refused(self.logits(*replay, "--ring-dtype", "float16"), "--ring-dtype", "bfloat16,float32")
        self.assert_refused(self.logits(*replay, "--ring-form", "deltas", "--flush", "sequential"), "flush sequential")
        self.assert_refused(self.logits(*replay, "--ring-form", "deltas"), "ring_form deltas", "Mamba-2")
        for options in (["--state-dtype", "float8"], ["--mode", "both"], ["--buffer-len", "4"], ["--device", "tpu"]):
            done = self.logits(*options)
            self.assertEqual(done.returncode, 3)
            self.assertIn(options[0], done.stderr)
            self.assertFalse(self.out.exists())

    def test_several_checkpoints(self):
        """One start for many folders gives what a start for each gives."""
        other = self.folder / "other"
        shutil.copytree(self.checkpoint, other)
        shard = sorted(other.glob("*.safetensors"))[0]
        save_file({name: 2 * tensor for name, tensor in load_file(shard).items()}, shard)
        outs = [self.folder / "0.npy", self.folder / "1.npy"]
        done = run("logits", self.checkpoint, other, "--ids", self.ids, "--out", outs[0], "--out", outs[1])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.logits().returncode, 0)
        self.assertEqual(outs[0].read_bytes(), self.out.read_bytes())
        self.assertNotEqual(outs[0].read_bytes(), outs[1].read_bytes())
        self.out.unlink()
        self.assert_refused(self.logits("--out", self.folder / "third.npy"), "--out: 2 files for 1 checkpoints")

    def test_bad_checkpoints(self):
        shard = sorted(self.checkpoint.glob("*.safetensors"))[1]
        whole = shard.read_bytes()
        shard.write_bytes(whole[:-10])
        self.assert_refused(self.logits(), shard, "data_offsets")
        shard.unlink()
        self.assert_refused(self.logits(), "index.json", shard.name, "does not exist")
        shard.write_bytes(whole)
        tensors = load_file(shard)
        name = next(iter(tensors))
        tensors[name].view(-1)[1] = math.nan
        save_file(tensors, shard)
        self.assert_refused(self.logits(), shard, name, "NaN or infinity")
        shard.write_bytes(whole)
        config = json.loads((self.checkpoint / "config.json").read_text())
        (self.checkpoint / "config.json").write_text(json.dumps({**config, "attention_sinks": 4}))
        self.assert_refused(self.logits(), "config.json", "unknown key \"attention_sinks\"")
        self.assertIn("unknown: attention_sinks", run("inspect", self.checkpoint).stdout)
        shutil.rmtree(self.checkpoint)
        self.assert_refused(self.logits(), self.checkpoint, "not a folder")

    def test_logits_that_are_not_finite(self):
        for shard in self.checkpoint.glob("*.safetensors"):
            tensors = load_file(shard)
            for name, tensor in tensors.items():
                if name == "lm_head.weight":
                    tensor[9] = 3e38
            save_file(tensors, shard)
        self.assert_refused(self.logits(), "not finite at token 0, vocabulary index 9")

    def test_an_output_that_cannot_be_written(self):
        missing = self.folder / "nowhere" / "logits.npy"
        done = run("logits", self.checkpoint, "--ids", self.ids, "--out", missing)
        self.assert_refused(done, missing)

    def test_inspect_counts_what_is_there(self):
        done = run("inspect", self.checkpoint, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        parameters = sum(parameter.numel() for parameter in self.model.parameters())
        self.assertEqual(found["parameters"], parameters)
        self.assertEqual(found["tensors"], {"F32": {"tensors": len(list(self.model.parameters())), "bytes": 4 * parameters}})
        self.assertEqual(found["layers"], ["attention", "mamba2", "mlp", "mamba2"])
        memory = found["bytes_per_sequence"]
        self.assertEqual(memory["state"]["bfloat16"], 2 * 4 * 64 * 128 * 2)
        self.assertEqual(memory["ring"]["bfloat16"]["16"], 2 * 16 * ((4 * 64 + 128) * 2 + 4 * 4))
        self.assertEqual(memory["kv_per_token"]["float32"], 2 * 2 * 20 * 4)
        ratios = {(row["buffer_len"], row["state"], row["ring"]): row["ratio"] for row in found["traffic"]["rows"]}
        self.assertEqual(ratios[1, "float32", "float32"], 1.0)
        state, entry, io = 4 * 64 * 128 * 4, (4 * 64 + 128) * 2 + 16, (2 * 4 * 64 + 2 * 128 + 4) * 4
        expected = ((1 + 1 / 16) * state + entry * (7.5 + 15 / 16) + io) / (2 * state + io)
        self.assertAlmostEqual(ratios[16, "float32", "bfloat16"], expected, places=12)
        config = json.loads((self.checkpoint / "config.json").read_text())
        keys = found["config_keys"]
        self.assertEqual(sorted(keys["read"] + keys["ignored"]), sorted(config))

    def test_inspect_prints_a_page(self):
        done = run("inspect", self.checkpoint)
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in ("nemotron_h", "2 mamba2", "state", "ring, L = 16", "KV per token", "Predicted", "ignored:"):
            self.assertIn(part, done.stdout)

    def test_inspect_describes_the_delta_rule(self):
        bundled = parity.ROOT / "checkpoints/tiny-qwen3-next"
        done = run("inspect", bundled, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual(found["parameters"], 7775536)
        self.assertEqual(found["delta_rule"], {"layers": 6, "num_key_heads": 2, "num_value_heads": 4, "key_dim": 128,
                                               "value_dim": 128, "conv_kernel": 4})
        self.assertEqual(found["bytes_per_sequence"]["state"]["float32"], 6 * 4 * 128 * 128 * 4)
        # Deltas and keys in the ring's type, decays in float32.
        self.assertEqual(found["bytes_per_sequence"]["ring"]["bfloat16"]["16"], 6 * 16 * ((4 * 128 + 2 * 128) * 2 + 4 * 4))
        page = run("inspect", bundled).stdout
        self.assertIn("delta rule   2 heads of 128 for keys, 4 of 128 for values", page)
        self.assertNotIn("mamba2", page)

    def test_inspect_looks_into_wrapped_configs(self):
        config = {"model_type": "qwen3_5", "text_config": {"num_hidden_layers": 4, "strange": 1}, "odd": {"a": 1},
                  "vision_config": {"depth": 2}}
        file = self.folder / "wrapped" / "config.json"
        file.parent.mkdir()
        file.write_text(json.dumps(config))
        done = run("inspect", file, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        keys = json.loads(done.stdout)["config_keys"]
        self.assertEqual(keys["unknown"], ["odd", "text_config.strange"])
        self.assertIn("text_config.num_hidden_layers", keys["read"])
        self.assertIn("vision_config", keys["ignored"])


if __name__ == "__main__":
    unittest.main()
