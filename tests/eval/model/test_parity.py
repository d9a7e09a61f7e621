"""Logits of `replayeval logits` against transformers' own nemotron_h, float32 on the CPU, in both modes.

    REPLAYEVAL=build/cpu/bin/replayeval python3 -m unittest tests/eval/model/test_parity.py
"""

import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import nemotron_h_models as models  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = os.environ.get("REPLAYEVAL", str(ROOT / "build/release/bin/replayeval"))
BUNDLED = ROOT / "checkpoints/tiny-nemotron-h"
TOLERANCE = 2e-4  # of the logit range
TOKENS = 45       # almost three chunks of transformers' path, almost three rings of ours


def replayeval_logits(folder, ids_file, *options):
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "logits.npy"
        command = [PROGRAM, "logits", str(folder), "--ids", str(ids_file), "--out", str(out), *options]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: exit {done.returncode}: {done.stderr}")
        return np.load(out)


def relative_difference(ours, theirs):
    """Largest absolute difference, as a share of the range of the reference's logits."""
    assert ours.shape == theirs.shape and ours.dtype == np.float32, (ours.shape, theirs.shape, ours.dtype)
    return float(np.abs(ours - theirs).max() / (theirs.max() - theirs.min()))


class Parity(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = pathlib.Path(self.scratch.name)
        self.ids_file = self.folder / "ids.json"

    def save(self, name):
        model = models.save_model(models.build_model(name), name, self.folder / "checkpoint")
        ids = random.Random(1).choices(range(model.config.vocab_size), k=TOKENS)
        models.write_ids(self.ids_file, ids)
        return model, ids

    def assert_parity(self, ours, theirs, label):
        difference = relative_difference(ours, theirs)
        print(f"{label}: largest difference {difference:.2e} of the logit range", file=sys.stderr)
        self.assertLessEqual(difference, TOLERANCE, label)

    def check_config(self, name):
        model, ids = self.save(name)
        theirs = models.reference_logits(model, ids)
        for mode in ("teacher_forced", "stepwise"):
            with self.subTest(name=name, mode=mode):
                ours = replayeval_logits(self.folder / "checkpoint", self.ids_file, "--mode", mode,
                                         "--dt-floor", "transformers")
                self.assert_parity(ours, theirs, f"{name}, {mode}")
        replay = replayeval_logits(self.folder / "checkpoint", self.ids_file, "--dt-floor", "transformers",
                                   "--executor", "replay", "--buffer-len", "7")
        self.assert_parity(replay, theirs, f"{name}, replay of 7")

    def test_groups_and_biases(self):
        self.check_config("groups")

    def test_tuned_shape_in_shards(self):
        self.check_config("wide_state")
        self.assertGreater(len(list((self.folder / "checkpoint").glob("*.safetensors"))), 2)

    def test_narrow_heads_in_bfloat16(self):
        self.check_config("narrow_heads")

    def test_tied_head_behind_the_other_prefix_in_float16(self):
        self.check_config("tied")

    def test_the_dt_floors_differ(self):
        """Else `--dt-floor` could do nothing and the tests above would not tell."""
        model, ids = self.save("tied")
        theirs = models.reference_logits(model, ids)
        published = replayeval_logits(self.folder / "checkpoint", self.ids_file, "--dt-floor", "published")
        self.assertGreater(relative_difference(published, theirs), TOLERANCE)

    def test_every_tensor_matters(self):
        """The test of the test: no tensor can be wrong by up to a tenth unnoticed."""
        for name in ("groups", "narrow_heads"):
            model, ids = self.save(name)
            ours = replayeval_logits(self.folder / "checkpoint", self.ids_file, "--dt-floor", "transformers")
            generator = torch.Generator().manual_seed(2)
            for key, parameter in model.named_parameters():
                original = parameter.detach().clone()
                with torch.no_grad():
                    parameter.mul_(0.9 + 0.2 * torch.rand(parameter.shape, generator=generator))
                difference = relative_difference(ours, models.reference_logits(model, ids))
                self.assertGreater(difference, TOLERANCE, f"{name}: {key} perturbed, yet parity holds")
                with torch.no_grad():
                    parameter.copy_(original)

    def test_bundled_checkpoint(self):
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_pretrained(BUNDLED, dtype=torch.float32).eval()
        ids = random.Random(3).choices(range(model.config.vocab_size), k=200)
        models.write_ids(self.ids_file, ids)
        theirs = models.reference_logits(model, ids)
        for mode in ("teacher_forced", "stepwise"):
            ours = replayeval_logits(BUNDLED, self.ids_file, "--mode", mode)
            self.assert_parity(ours, theirs, f"bundled checkpoint, {mode}")


if __name__ == "__main__":
    unittest.main()
