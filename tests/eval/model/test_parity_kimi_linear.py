"""kimi_linear against transformers.

    REPLAYEVAL=build/cpu/bin/replayeval python3 -m unittest tests/eval/model/test_parity_kimi_linear.py
"""

import pathlib
import re
import sys
import unittest

import torch
from transformers import KimiLinearConfig, KimiLinearForCausalLM

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import parity  # noqa: E402


def case(layers, *, dtype="float32", shards=1, rewrite=None, tokens=parity.TOKENS, dense=1, **settings):
    """`layers`: K for Kimi Delta Attention, * for latent attention; the first `dense` of them have no experts."""
    names = {"K": "linear_attention", "*": "full_attention"}
    settings = dict(settings, layer_types=[names[letter] for letter in layers], num_hidden_layers=len(layers),
                    mlp_layer_types=["dense" if i < dense else "sparse" for i in range(len(layers))])
    return parity.Case(settings, dtype, shards, rewrite=rewrite, tokens=tokens)


def renamed(tensors, change):
    for name in list(tensors):
        tensors[change(name)] = tensors.pop(name)


def published_layout(tensors, config):
    """MLPs under their own name, layers by two lists that count from 1, sizes in linear_attn_config, and keys that do
    nothing."""
    for i, kind in enumerate(config["mlp_layer_types"]):
        if kind == "dense":
            prefix = f"model.layers.{i}."
            renamed(tensors, lambda name: name.replace(prefix + "block_sparse_moe.", prefix + "mlp."))
    config["first_k_dense_replace"] = config.pop("mlp_layer_types").count("dense")
    layers = config.pop("layer_types")
    config["linear_attn_config"] = dict(
        kda_layers=[i + 1 for i, kind in enumerate(layers) if kind == "linear_attention"],
        full_attn_layers=[i + 1 for i, kind in enumerate(layers) if kind == "full_attention"],
        num_heads=config.pop("linear_num_heads"),
        head_dim=config.pop("linear_head_dim"),
        short_conv_kernel_size=config.pop("linear_conv_kernel_dim"),
    )
    config.update(mla_use_nope=True, moe_layer_freq=1, moe_router_activation_func="sigmoid", head_dim=72,
                  use_grouped_topk=True, num_nextn_predict_layers=0, rope_theta=500.0, rope_scaling=None,
                  tie_word_embeddings=True)


def names_inside_transformers(tensors, config):
    """One convolution, experts in one tensor, the decay's tensors in a module of their own, the newer keys."""
    renamed(tensors, lambda name: name.replace("block_sparse_moe", "mlp"))
    renamed(tensors, lambda name: re.sub(r"self_attn\.(f_[ab]_proj|A_log|dt_bias)", r"self_attn.forget_gate.\1", name))
    for name in [name for name in tensors if name.endswith("q_conv1d.weight")]:
        parts = [tensors.pop(name.replace("q_conv1d", f"{part}_conv1d")) for part in "qkv"]
        tensors[name.replace("q_conv1d", "conv1d")] = torch.cat(parts)
    for name in [name for name in tensors if name.endswith("experts.0.w1.weight")]:
        place = name.removesuffix("0.w1.weight")

        def stacked(leaf):
            return torch.stack([tensors.pop(f"{place}{i}.{leaf}.weight") for i in range(config["num_experts"])])

        tensors[place + "gate_up_proj"] = torch.cat([stacked("w1"), stacked("w3")], dim=1)
        tensors[place + "down_proj"] = stacked("w2")
    for old, new in dict(model_max_length="max_position_embeddings", moe_renormalize="norm_topk_prob",
                         num_expert_group="n_group", num_experts="num_local_experts",
                         num_experts_per_token="num_experts_per_tok", num_shared_experts="n_shared_experts").items():
        config[new] = config.pop(old)


class KimiLinear(parity.ParityTest):
    config_class, model_class = KimiLinearConfig, KimiLinearForCausalLM
    base = dict(
        vocab_size=205,
        hidden_size=60,
        intermediate_size=84,
        moe_intermediate_size=36,
        num_attention_heads=3,
        num_key_value_heads=3,
        kv_lora_rank=28,
        qk_nope_head_dim=20,
        qk_rope_head_dim=12,
        v_head_dim=24,
        num_local_experts=6,
        num_experts_per_tok=2,
        linear_num_heads=3,
        linear_head_dim=24,
        max_position_embeddings=512,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )

    def test_published_layout_in_shards(self):
        self.check(case("KK*K", shards=4, rewrite=published_layout))

    def test_narrow_queries_and_groups_of_experts(self):
        self.check(case("*K*", dtype="bfloat16", q_lora_rank=36, attention_bias=True, num_local_experts=8, n_group=4,
                        topk_group=2, num_experts_per_tok=3, norm_topk_prob=False, routed_scaling_factor=1.3,
                        n_shared_experts=2, rms_norm_eps=1e-2, tokens=80))

    def test_names_inside_transformers(self):
        self.check(case("K*K", dtype="float16", rewrite=names_inside_transformers, dense=2, linear_num_heads=5,
                        linear_head_dim=16, linear_conv_kernel_dim=3, v_head_dim=36, num_local_experts=4))

    def test_wide_heads_and_experts_in_every_layer_in_mixed_types(self):
        self.check(case("K*", dtype="mixed", shards=3, dense=0, linear_num_heads=2, linear_head_dim=128,
                        num_local_experts=3, num_experts_per_tok=1, norm_topk_prob=False))

    def test_bfloat16(self):
        self.check_bfloat16(case("KK*K", dtype="bfloat16", dense=4))

    def test_bfloat16_mixture(self):
        self.check_bfloat16(case("KK*K", dtype="bfloat16", num_experts_per_tok=4))


if __name__ == "__main__":
    unittest.main()
