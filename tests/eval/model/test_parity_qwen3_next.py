"""qwen3_next against transformers.

    REPLAYEVAL=build/cpu/bin/replayeval python3 -m unittest tests/eval/model/test_parity_qwen3_next.py
"""

import pathlib
import sys
import unittest

import torch
from transformers import AutoModelForCausalLM, Qwen3NextConfig, Qwen3NextForCausalLM

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import parity  # noqa: E402
import qwen_cases  # noqa: E402

BUNDLED = parity.ROOT / "checkpoints/tiny-qwen3-next"


def stacked_with_interval(tensors, config):
    qwen_cases.stack_experts(tensors, config)
    qwen_cases.add_prediction_head(tensors)
    qwen_cases.say_interval(config, 3)


def old_positions(tensors, config):
    """The rope keys of earlier versions, beside each other at the top."""
    config["rope_theta"] = config.pop("rope_parameters")["rope_theta"]
    config["rope_scaling"] = None
    config["use_sliding_window"] = False


class Qwen3Next(qwen_cases.QwenParity):
    config_class, model_class = Qwen3NextConfig, Qwen3NextForCausalLM
    base = {**qwen_cases.TEXT, **qwen_cases.EXPERTS}

    def test_experts_in_every_second_layer(self):
        self.check(self.case("DD*D", shards=3, decoder_sparse_step=2))

    def test_experts_stacked_around_an_mlp_layer_with_biases(self):
        self.check(self.case("DD*", dtype="bfloat16", rewrite=stacked_with_interval, mlp_only_layers=[1], norm_topk_prob=False,
                             attention_bias=True, linear_num_key_heads=1, linear_num_value_heads=4, linear_key_head_dim=40,
                             linear_value_head_dim=16, linear_conv_kernel_dim=3, num_experts_per_tok=3))

    def test_dense_and_tied_with_positions_in_the_old_spelling(self):
        self.check(self.case("D*D", dtype="float16", rewrite=old_positions, num_experts=0, tie_word_embeddings=True,
                             num_key_value_heads=6, linear_num_key_heads=3, linear_num_value_heads=3, linear_key_head_dim=64,
                             linear_value_head_dim=64, partial_rotary_factor=0.75,
                             rope_parameters={"rope_type": "default", "rope_theta": 300.0}))

    def test_one_expert_a_token_with_stretched_positions(self):
        self.check(self.case("*DD", dtype="mixed", shards=2, num_experts=3, num_experts_per_tok=1, norm_topk_prob=False,
                             linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=16,
                             linear_value_head_dim=72, linear_conv_kernel_dim=2, num_attention_heads=3, num_key_value_heads=1,
                             head_dim=20, rope_parameters=qwen_cases.YARN))

    def test_bfloat16(self):
        self.check_bfloat16(self.case("DD*D", dtype="bfloat16", decoder_sparse_step=2, **qwen_cases.ALL_CHOSEN))

    def test_bundled_checkpoint(self):
        model = AutoModelForCausalLM.from_pretrained(BUNDLED, dtype=torch.float32).eval()
        ids = parity.random_ids(model.config.vocab_size, 200, seed=3)
        theirs = parity.reference_logits(model, ids)
        for arm, options in self.arms.items():
            ours = parity.replayeval_logits([BUNDLED], ids, *parity.FLOAT32, *options)[0]
            self.assert_parity(ours, theirs, f"bundled checkpoint, {arm}")


if __name__ == "__main__":
    unittest.main()
