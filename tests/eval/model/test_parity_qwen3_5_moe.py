"""qwen3_5_moe, alone (qwen3_5_moe_text) and wrapped with an image encoder, against transformers.

    REPLAYEVAL=build/cpu/bin/replayeval python3 -m unittest tests/eval/model/test_parity_qwen3_5_moe.py
"""

import pathlib
import sys
import unittest

from transformers import (Qwen3_5MoeConfig, Qwen3_5MoeForCausalLM, Qwen3_5MoeForConditionalGeneration,
                          Qwen3_5MoeTextConfig)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import qwen_cases  # noqa: E402

# This type knows no other feed-forward part than experts.
TEXT = {key: value for key, value in {**qwen_cases.TEXT, **qwen_cases.EXPERTS}.items() if key != "intermediate_size"}


def published(tensors, config):
    qwen_cases.stack_experts(tensors, config)
    qwen_cases.add_prediction_head(tensors)
    qwen_cases.published_keys(config.get("text_config") or config)


class Qwen3_5MoeText(qwen_cases.QwenParity):
    config_class, model_class = Qwen3_5MoeTextConfig, Qwen3_5MoeForCausalLM
    base = TEXT

    def test_published_keys_and_stacked_experts(self):
        self.check(self.case("DD*", shards=3, rewrite=published))

    def test_one_expert_a_token_with_biases_in_bfloat16(self):
        self.check(self.case("D*D", dtype="bfloat16", attention_bias=True, num_experts=4, num_experts_per_tok=1,
                             linear_num_key_heads=1, linear_num_value_heads=3, linear_key_head_dim=40,
                             linear_value_head_dim=24, linear_conv_kernel_dim=3))

    def test_tied_with_stretched_positions(self):
        self.check(self.case("*D", dtype="mixed", shards=2, tie_word_embeddings=True, num_experts=5, num_experts_per_tok=5,
                             linear_num_key_heads=3, linear_num_value_heads=6, linear_key_head_dim=16,
                             linear_value_head_dim=48, num_key_value_heads=1, head_dim=20, rope_parameters=qwen_cases.YARN))

    def test_bfloat16(self):
        self.check_bfloat16(self.case("DD*", dtype="bfloat16", **qwen_cases.ALL_CHOSEN))


class Qwen3_5MoeWrapped(qwen_cases.QwenParity):
    config_class, model_class = Qwen3_5MoeConfig, Qwen3_5MoeForConditionalGeneration

    def wrapped_case(self, layers, **settings):
        return self.wrapped(self.case(layers, **{**TEXT, **settings}))

    def test_published_keys_and_stacked_experts(self):
        self.check(self.wrapped_case("DD*", dtype="bfloat16", shards=2, rewrite=published))

    def test_experts_one_by_one(self):
        self.check(self.wrapped_case("D*", num_experts=5, num_experts_per_tok=3, linear_num_value_heads=2,
                                     linear_conv_kernel_dim=5))

    def test_tied_in_float16(self):
        self.check(self.wrapped_case("*DD", dtype="float16", tie_word_embeddings=True, num_key_value_heads=6,
                                     linear_num_key_heads=1, linear_num_value_heads=8, linear_key_head_dim=16,
                                     linear_value_head_dim=8))


if __name__ == "__main__":
    unittest.main()
