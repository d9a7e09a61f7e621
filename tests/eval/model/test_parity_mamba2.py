"""mamba2 against transformers.

    REPLAYEVAL=build/cpu/bin/replayeval python3 -m unittest tests/eval/model/test_parity_mamba2.py
"""

import math
import pathlib
import sys
import unittest

from transformers import Mamba2Config, Mamba2ForCausalLM

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import parity  # noqa: E402

# transformers' inference normalises the whole width.
OPTIONS = ("--norm-span", "transformers")


def as_mistral_saves(tensors, config):
    """The prefix and the embeddings' name of the consolidated file, and keys of the folder's first config.json."""
    for name in list(tensors):
        tensors["model." + name.replace("embeddings", "embedding")] = tensors.pop(name)
    config.update(norm_before_gate=True, rms_norm=True, intermediate_size=2 * config["hidden_size"],
                  time_step_init_scheme="random", time_step_scale=1.0, time_step_limit=[0.0, math.inf])


def singular_and_tied(tensors, config):
    """`backbone.embedding`, and a tied head that is not stored."""
    tensors["backbone.embedding.weight"] = tensors.pop("backbone.embeddings.weight")
    tensors.pop("lm_head.weight", None)


class Mamba2(parity.ParityTest):
    config_class, model_class = Mamba2Config, Mamba2ForCausalLM
    base = dict(vocab_size=211, hidden_size=72, expand=2, num_heads=6, head_dim=24, state_size=16, n_groups=3,
                num_hidden_layers=3, chunk_size=16, use_cache=False)

    def test_groups_and_biases(self):
        self.check(parity.Case(dict(use_bias=True, use_conv_bias=False), options=OPTIONS))

    def test_limits_that_bite_in_mistral_layout(self):
        self.check(parity.Case(dict(hidden_size=88, num_heads=11, head_dim=16, n_groups=1, state_size=40,
                                    residual_in_fp32=False, time_step_limit=(0.05, 0.4)),
                               dtype="mixed", shards=3, rewrite=lambda tensors, config: (
                                   as_mistral_saves(tensors, config), config.update(time_step_limit=[0.05, 0.4])),
                               options=OPTIONS))

    def test_tied_in_float16(self):
        self.check(parity.Case(dict(expand=1, num_heads=9, head_dim=8, n_groups=9, state_size=24, conv_kernel=3,
                                    tie_word_embeddings=True),
                               dtype="float16", rewrite=singular_and_tied, options=OPTIONS))

    def test_bfloat16_in_shards(self):
        self.check(parity.Case(dict(hidden_size=96, num_heads=3, head_dim=64, n_groups=1, state_size=128,
                                    num_hidden_layers=2), dtype="bfloat16", shards=2,
                               rewrite=as_mistral_saves, options=OPTIONS))

    def test_bfloat16(self):
        self.check_bfloat16(parity.Case({}, dtype="bfloat16", options=OPTIONS))

    def test_one_group_needs_no_option(self):
        """With one group both spans are one."""
        case = parity.Case(dict(n_groups=1))
        reference, ids = self.save(case)
        ours = parity.replayeval_logits([self.folder], ids)[0]
        self.assert_parity(ours, parity.reference_logits(reference, ids), "one group, published span")

    def test_the_published_span_is_each_group(self):
        self.check_published_span(parity.Case({}), groups=3)


if __name__ == "__main__":
    unittest.main()
