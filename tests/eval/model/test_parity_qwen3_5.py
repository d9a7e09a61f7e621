"""qwen3_5, alone (qwen3_5_text) and wrapped with an image encoder, against transformers.

    REPLAYEVAL=build/cpu/bin/replayeval python3 -m unittest tests/eval/model/test_parity_qwen3_5.py
"""

import pathlib
import sys
import unittest

from transformers import Qwen3_5Config, Qwen3_5ForCausalLM, Qwen3_5ForConditionalGeneration, Qwen3_5TextConfig

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import qwen_cases  # noqa: E402


def published(tensors, config):
    qwen_cases.add_prediction_head(tensors)
    qwen_cases.published_keys(config.get("text_config") or config)


def interval(tensors, config):
    qwen_cases.say_interval(config, 2)


class Qwen3_5Text(qwen_cases.QwenParity):
    config_class, model_class = Qwen3_5TextConfig, Qwen3_5ForCausalLM
    base = qwen_cases.TEXT

    def test_published_keys(self):
        self.check(self.case("DD*D", shards=3, rewrite=published))

    def test_biases_and_wide_keys_in_bfloat16(self):
        self.check(self.case("D*D*", dtype="bfloat16", rewrite=interval, attention_bias=True, linear_num_key_heads=1,
                             linear_num_value_heads=5, linear_key_head_dim=48, linear_value_head_dim=8,
                             linear_conv_kernel_dim=3))

    def test_tied_with_stretched_positions(self):
        self.check(self.case("*DD", dtype="mixed", shards=2, tie_word_embeddings=True, linear_num_key_heads=3,
                             linear_num_value_heads=6, linear_key_head_dim=8, linear_value_head_dim=64,
                             linear_conv_kernel_dim=5, num_key_value_heads=6, head_dim=20, rope_parameters=qwen_cases.YARN))

    def test_bfloat16(self):
        self.check_bfloat16(self.case("DD*D", dtype="bfloat16", seed=1))


class Qwen3_5Wrapped(qwen_cases.QwenParity):
    config_class, model_class = Qwen3_5Config, Qwen3_5ForConditionalGeneration

    def wrapped_case(self, layers, **settings):
        return self.wrapped(self.case(layers, **{**qwen_cases.TEXT, **settings}))

    def test_published_keys(self):
        self.check(self.wrapped_case("DD*D", dtype="bfloat16", shards=2, rewrite=published))

    def test_tied(self):
        self.check(self.wrapped_case("*D", tie_word_embeddings=True, linear_num_key_heads=2, linear_num_value_heads=4,
                                     linear_key_head_dim=32, linear_value_head_dim=16))

    def test_wide_rotation_in_float16(self):
        self.check(self.wrapped_case("D*", dtype="float16", num_key_value_heads=3, linear_num_value_heads=2,
                                     linear_conv_kernel_dim=2,
                                     rope_parameters={"rope_type": "default", "rope_theta": 100.0,
                                                      "partial_rotary_factor": 1.0}))


if __name__ == "__main__":
    unittest.main()
