"""granitemoehybrid against transformers.

    REPLAYEVAL=build/cpu/bin/replayeval python3 -m unittest tests/eval/model/test_parity_granitemoehybrid.py
"""

import pathlib
import sys
import unittest

from transformers import GraniteMoeHybridConfig, GraniteMoeHybridForCausalLM

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import parity  # noqa: E402

# transformers' inference normalises the whole width.
OPTIONS = ("--norm-span", "transformers")

MAMBA, ATTENTION = "linear_attention", "full_attention"


def case(layers, *, dtype="float32", shards=1, rewrite=None, options=OPTIONS, **settings):
    names = {"M": MAMBA, "*": ATTENTION}
    settings = dict(settings, layer_types=[names[letter] for letter in layers], num_hidden_layers=len(layers))
    return parity.Case(settings, dtype, shards, rewrite=rewrite, options=options)


def renamed_experts(tensors, config):
    """The names that transformers 5 has inside, and the older ones of the layers."""
    for name in list(tensors):
        renamed = (name.replace("block_sparse_moe.input_linear.weight", "block_sparse_moe.experts.gate_up_proj")
                   .replace("block_sparse_moe.output_linear.weight", "block_sparse_moe.experts.down_proj")
                   .replace("block_sparse_moe.router.layer.weight", "block_sparse_moe.router.weight"))
        tensors[renamed] = tensors.pop(name)
    config["layers_block_type"] = [{MAMBA: "mamba", ATTENTION: "attention"}[kind] for kind in config.pop("layer_types")]
    config["position_embedding_type"] = "nope"
    config["normalization_function"], config["init_method"] = "rmsnorm", "mup"


class GraniteMoeHybrid(parity.ParityTest):
    config_class, model_class = GraniteMoeHybridConfig, GraniteMoeHybridForCausalLM
    base = dict(
        vocab_size=199,
        hidden_size=72,
        intermediate_size=36,
        shared_intermediate_size=44,
        num_attention_heads=6,
        num_key_value_heads=2,
        num_local_experts=6,
        num_experts_per_tok=3,
        mamba_n_heads=6,
        mamba_n_groups=3,
        mamba_d_head=24,
        mamba_d_state=16,
        mamba_chunk_size=16,
        max_position_embeddings=512,
        embedding_multiplier=1.7,
        logits_scaling=0.6,
        residual_multiplier=0.8,
        attention_multiplier=0.4,
        rms_norm_eps=3e-6,
    )

    def test_mixture_and_shared_mlp(self):
        self.check(case("M*MM", shards=3))

    def test_experts_alone_under_the_new_names(self):
        self.check(case("MM*", dtype="bfloat16", rewrite=renamed_experts, shared_intermediate_size=0,
                        num_local_experts=5, num_experts_per_tok=2, intermediate_size=28, mamba_conv_bias=False))

    def test_dense_tied_with_rotary_positions_and_biases(self):
        self.check(case("*M*", dtype="float16", num_local_experts=0, position_embedding_type="rope",
                        attention_bias=True, mamba_proj_bias=True, tie_word_embeddings=True, head_dim=20,
                        rope_parameters={"rope_type": "default", "rope_theta": 100.0}))

    def test_one_expert_a_token_with_a_tight_time_step_and_one_group(self):
        self.check(case("M*M", dtype="mixed", shards=2, num_experts_per_tok=1, time_step_limit=[0.1, 0.4],
                        position_embedding_type="rope", num_key_value_heads=6, mamba_n_groups=1, mamba_d_head="auto",
                        mamba_d_conv=3, options=()))

    def test_attention_only(self):
        self.check(case("**", num_local_experts=4, num_experts_per_tok=4))

    def test_bfloat16_mixture(self):
        self.check_bfloat16(case("M*MM", dtype="bfloat16"))

    def test_the_published_span_is_each_group(self):
        self.check_published_span(case("M*MM"), groups=3)


if __name__ == "__main__":
    unittest.main()
