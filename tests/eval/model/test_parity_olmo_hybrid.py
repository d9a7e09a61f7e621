"""olmo_hybrid against transformers.

    REPLAYEVAL=build/cpu/bin/replayeval python3 -m unittest tests/eval/model/test_parity_olmo_hybrid.py
"""

import pathlib
import sys
import unittest

import torch
from transformers import OlmoHybridConfig, OlmoHybridForCausalLM

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import parity  # noqa: E402

LAYERS = {"D": "linear_attention", "*": "full_attention"}


def case(layers, *, dtype="float32", shards=1, rewrite=None, tokens=parity.TOKENS, **settings):
    settings = dict(settings, layer_types=[LAYERS[letter] for letter in layers], num_hidden_layers=len(layers))
    return parity.Case(settings, dtype, shards, rewrite=rewrite, tokens=tokens)


def joined_conv(tensors, name):
    return torch.cat([tensors.pop(f"{name}.{part}_conv1d.weight") for part in "qkv"])


def renamed(tensors, change):
    for name in list(tensors):
        tensors[change(name)] = tensors.pop(name)


def linear_layers(tensors):
    return sorted({name.rpartition(".")[0] for name in tensors if name.endswith("linear_attn.A_log")})


def published_layout(tensors, config):
    """What transformers saves otherwise than published: convolutions cut in equal parts, the norm behind attention."""
    key = config["linear_num_key_heads"] * config["linear_key_head_dim"]
    value = config["linear_num_value_heads"] * config["linear_value_head_dim"]
    for name in linear_layers(tensors):
        for part, rows in zip("qkv", joined_conv(tensors, name).split([key, key, value])):
            tensors[f"{name}.{part}_conv1d.weight"] = rows.contiguous()
    for i, kind in enumerate(config["layer_types"]):
        if kind == "full_attention":
            old = f"model.layers.{i}.feedforward_layer_norm.weight"
            tensors[old.replace("feedforward_layer_norm", "post_attention_layernorm")] = tensors.pop(old)
    config["rope_theta"] = config.pop("rope_parameters")["rope_theta"]
    config["linear_use_gate"] = True


def names_inside_transformers(tensors, config):
    for name in linear_layers(tensors):
        tensors[f"{name}.conv1d.weight"] = joined_conv(tensors, name)
    renamed(tensors, lambda name: name.replace("attention_layer_norm", "input_layernorm")
            .replace("feedforward_layer_norm", "post_attention_layernorm"))
    del config["rope_parameters"]  # the default is a base of 10000


def defaults_left_out(tensors, config):
    for key in ("linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim",
                "linear_allow_neg_eigval", "num_key_value_heads"):
        del config[key]
    config["layer_types"] = None


class OlmoHybrid(parity.ParityTest):
    config_class, model_class = OlmoHybridConfig, OlmoHybridForCausalLM
    base = dict(
        vocab_size=207,
        hidden_size=60,
        intermediate_size=84,
        num_attention_heads=5,
        linear_num_key_heads=3,
        linear_num_value_heads=3,
        linear_key_head_dim=24,
        linear_value_head_dim=48,
        max_position_embeddings=512,
        pad_token_id=0,
        eos_token_id=1,
        rope_theta=None,
    )

    def test_published_head_sizes_without_positions(self):
        self.check(case("DD*D", shards=4, rewrite=published_layout, linear_key_head_dim=96, linear_value_head_dim=192))

    def test_rotary_positions_shared_heads_and_biases(self):
        self.check(case("*D*", dtype="bfloat16", attention_bias=True, num_attention_heads=6, num_key_value_heads=2,
                        linear_num_value_heads=6, linear_value_head_dim=16, linear_allow_neg_eigval=False,
                        linear_conv_kernel_dim=3, rms_norm_eps=1e-4, tokens=80,
                        rope_parameters={"rope_type": "default", "rope_theta": 500.0}))

    def test_tied_under_the_names_inside_transformers(self):
        self.check(case("D*", dtype="float16", rewrite=names_inside_transformers, tie_word_embeddings=True, head_dim=20,
                        linear_key_head_dim=40, linear_value_head_dim=40, rope_parameters={"rope_theta": 10000.0}))

    def test_defaults_in_mixed_types(self):
        self.check(case("DDD*D", dtype="mixed", shards=3, rewrite=defaults_left_out, hidden_size=96,
                        num_attention_heads=3, num_key_value_heads=3, linear_key_head_dim=24,
                        linear_value_head_dim=48,
                        rope_parameters={"rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0,
                                         "original_max_position_embeddings": 32}))

    def test_bfloat16(self):
        self.check_bfloat16(case("DD*", dtype="bfloat16"))

    def test_bfloat16_with_rotary_positions(self):
        self.check_bfloat16(case("D**", dtype="bfloat16", rope_parameters={"rope_theta": 10000.0}))


if __name__ == "__main__":
    unittest.main()
