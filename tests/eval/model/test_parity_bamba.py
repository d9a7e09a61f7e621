"""bamba against transformers.

    REPLAYEVAL=build/cpu/bin/replayeval python3 -m unittest tests/eval/model/test_parity_bamba.py
"""

import pathlib
import sys
import unittest

from transformers import BambaConfig, BambaForCausalLM

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import parity  # noqa: E402

# transformers' inference normalises the whole width.
OPTIONS = ("--norm-span", "transformers")


def misleading_rotary_key(tensors, config):
    """The published code does not look at a partial_rotary_factor beside the rope parameters."""
    config["partial_rotary_factor"] = 1.0
    config["rope_theta"] = config.pop("rope_parameters")["rope_theta"]
    config["rope_scaling"] = None


class Bamba(parity.ParityTest):
    config_class, model_class = BambaConfig, BambaForCausalLM
    base = dict(
        vocab_size=203,
        hidden_size=72,
        intermediate_size=100,
        num_hidden_layers=4,
        attn_layer_indices=[1],
        num_attention_heads=6,
        num_key_value_heads=2,
        mamba_n_heads=6,
        mamba_n_groups=3,
        mamba_d_head=24,
        mamba_d_state=16,
        mamba_chunk_size=16,
        max_position_embeddings=512,
    )

    def test_groups_in_shards(self):
        self.check(parity.Case({}, shards=4, options=OPTIONS))

    def test_biases_and_whole_heads(self):
        self.check(parity.Case(dict(attn_layer_indices=[0, 2], num_hidden_layers=3, attention_bias=True, mlp_bias=True,
                                    mamba_proj_bias=True, mamba_conv_bias=False, rms_norm_eps=1e-4,
                                    rope_parameters={"rope_type": "default", "rope_theta": 500.0,
                                                     "partial_rotary_factor": 1.0}),
                               dtype="bfloat16", options=OPTIONS))

    def test_tied_with_a_tight_time_step(self):
        self.check(parity.Case(dict(num_hidden_layers=3, tie_word_embeddings=True, time_step_limit=[0.15, 0.5],
                                    mamba_n_groups=1, mamba_d_head="auto", mamba_n_heads=9, z_loss_coefficient=0.1,
                                    num_key_value_heads=6, mamba_d_conv=3),
                               dtype="float16", rewrite=misleading_rotary_key))

    def test_without_attention_in_mixed_types(self):
        self.check(parity.Case(dict(attn_layer_indices=None, num_hidden_layers=2, mamba_n_heads=3, mamba_n_groups=3,
                                    mamba_d_head=48), dtype="mixed", shards=2, options=OPTIONS))

    def test_bfloat16(self):
        self.check_bfloat16(parity.Case({}, dtype="bfloat16", options=OPTIONS))

    def test_the_published_span_is_each_group(self):
        self.check_published_span(parity.Case({}), groups=3)


if __name__ == "__main__":
    unittest.main()
