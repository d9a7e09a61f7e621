"""Small random nemotron_h models: sizes are odd on purpose (hidden 72, 88: no multiples of 32), groups are many and few,
and every switch has both positions."""

import re

import torch

import parity

BASE = dict(
    vocab_size=211,
    hidden_size=72,
    intermediate_size=104,
    num_attention_heads=6,
    num_key_value_heads=2,
    head_dim=20,
    mamba_num_heads=6,
    mamba_head_dim=24,
    ssm_state_size=16,
    n_groups=3,
    conv_kernel=4,
    chunk_size=16,
    max_position_embeddings=512,
    use_mamba_kernels=False,
)
OPTIONS = ("--dt-floor", "transformers")
LAYER_NAMES = {"M": "linear_attention", "*": "full_attention", "-": "mlp", "E": "moe"}


def case(layers, dtype="float32", shards=1, prepare=None, rewrite=None, seed=0, **settings):
    settings["layers_block_type"] = [LAYER_NAMES[letter] for letter in layers]
    return parity.Case(settings, dtype, shards, prepare, rewrite, OPTIONS, seed=seed)


def copy_embeddings_to_head(model):
    """`tie_word_embeddings` does nothing in transformers' nemotron_h: there the head must be the embeddings by value."""
    model.lm_head.weight.copy_(model.model.embeddings.weight)


def drop_head_and_rename(tensors, config):
    """A head that is left out and another prefix, as other writers of such folders do."""
    del tensors["lm_head.weight"]
    for name in list(tensors):
        tensors[name.replace("backbone.", "model.", 1)] = tensors.pop(name)


def stack_experts(tensors, config):
    """One tensor for all experts of a layer, as transformers holds them."""
    for name in [name for name in tensors if ".experts.0." in name]:
        each = [tensors.pop(name.replace(".0.", f".{i}.")) for i in range(config["n_routed_experts"])]
        tensors[re.sub(r"\.0\.(\w+)\.weight$", r".\1", name)] = torch.stack(each)


def old_spelling(tensors, config):
    """The layers as a pattern, and the names and the infinity of other versions."""
    letters = {name: letter for letter, name in LAYER_NAMES.items()}
    config["hybrid_override_pattern"] = "".join(letters[name] for name in config.pop("layers_block_type"))
    config["num_local_experts"] = config.pop("n_routed_experts")
    config["mamba_n_groups"] = config.pop("n_groups")
    config["mamba_d_conv"] = config.pop("conv_kernel")
    config["mamba_conv_bias"] = config.pop("use_conv_bias")
    config["mamba_dt_min"] = config.pop("time_step_min")
    config["mamba_dt_limit"] = [0.0, {"__float__": "Infinity"}]
    del config["time_step_limit"]


MIXTURE = dict(n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=44,
               moe_shared_expert_intermediate_size=52)
CASES = {
    "groups": case("M-*M", use_bias=True, mlp_bias=True, use_conv_bias=False),
    "wide_state": case("*M-M", shards=9, mamba_head_dim=64, ssm_state_size=128, mamba_num_heads=4, n_groups=1,
                       hidden_size=88),
    "narrow_heads": case("MM*-", dtype="bfloat16", mamba_head_dim=8, ssm_state_size=40, mamba_num_heads=10, n_groups=5,
                         conv_kernel=3, num_attention_heads=3, num_key_value_heads=3, residual_in_fp32=True),
    "tied": case("-MM*M", dtype="float16", prepare=copy_embeddings_to_head, rewrite=drop_head_and_rename,
                 mamba_head_dim=16, ssm_state_size=24, mamba_num_heads=8, n_groups=2, tie_word_embeddings=True,
                 time_step_min=0.02),
    "mixture": case("MEM*E-", **MIXTURE, routed_scaling_factor=2.5, n_shared_experts=1),
    "expert_groups": case("EM*E", dtype="mixed", shards=3, rewrite=old_spelling, n_routed_experts=8, n_group=4, topk_group=2,
                          num_experts_per_tok=3, norm_topk_prob=False, moe_intermediate_size=40, mlp_bias=True,
                          moe_shared_expert_intermediate_size=24, time_step_min=0.05),
    "latent_experts": case("ME*ME", dtype="bfloat16", shards=2, rewrite=stack_experts, seed=1, **MIXTURE, moe_latent_size=28,
                           mlp_bias=True, use_bias=True),
}
