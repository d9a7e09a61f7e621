"""nemotron_h against transformers.

    REPLAYEVAL=build/cpu/bin/replayeval python3 -m unittest tests/eval/model/test_parity_nemotron_h.py
"""

import pathlib
import sys
import unittest

import torch
from transformers import AutoModelForCausalLM, NemotronHConfig, NemotronHForCausalLM

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import parity  # noqa: E402
from nemotron_h_cases import BASE, CASES  # noqa: E402

BUNDLED = parity.ROOT / "checkpoints/tiny-nemotron-h"


class NemotronH(parity.ParityTest):
    config_class, model_class = NemotronHConfig, NemotronHForCausalLM
    base = BASE

    def test_groups_and_biases(self):
        self.check(CASES["groups"])

    def test_tuned_shape_in_shards(self):
        self.check(CASES["wide_state"])

    def test_narrow_heads_in_bfloat16(self):
        self.check(CASES["narrow_heads"])

    def test_tied_head_behind_the_other_prefix_in_float16(self):
        self.check(CASES["tied"])

    def test_mixture_of_experts(self):
        self.check(CASES["mixture"])

    def test_expert_groups_in_the_old_spelling(self):
        self.check(CASES["expert_groups"])

    def test_latent_experts_stacked(self):
        self.check(CASES["latent_experts"])

    def test_bfloat16(self):
        self.check_bfloat16(CASES["groups"])

    def test_bfloat16_mixture(self):
        self.check_bfloat16(CASES["latent_experts"])

    def test_the_dt_floors_differ(self):
        """Else `--dt-floor` could do nothing and the tests above would not tell."""
        reference, ids = self.save(CASES["tied"])
        published = parity.replayeval_logits([self.folder], ids, "--dt-floor", "published")[0]
        difference = parity.relative_difference(published, parity.reference_logits(reference, ids))
        self.assertGreater(difference, parity.TOLERANCE)

    def test_bundled_checkpoint(self):
        model = AutoModelForCausalLM.from_pretrained(BUNDLED, dtype=torch.float32).eval()
        ids = parity.random_ids(model.config.vocab_size, 200, seed=3)
        theirs = parity.reference_logits(model, ids)
        for mode in ("teacher_forced", "stepwise"):
            ours = parity.replayeval_logits([BUNDLED], ids, *parity.FLOAT32, "--mode", mode)[0]
            self.assert_parity(ours, theirs, f"bundled checkpoint, {mode}")


if __name__ == "__main__":
    unittest.main()
