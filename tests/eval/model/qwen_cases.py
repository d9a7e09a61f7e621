"""Small random models of the Qwen hybrids, all three types from the same sizes: value heads are several to a key head, keys and
values differ in width, few sizes are multiples of 32, and every switch has both positions."""

import torch

import parity

LINEAR, ATTENTION = "linear_attention", "full_attention"
TEXT = dict(
    vocab_size=199,
    hidden_size=72,
    intermediate_size=44,
    num_attention_heads=6,
    num_key_value_heads=2,
    head_dim=24,
    max_position_embeddings=512,
    linear_num_key_heads=2,
    linear_num_value_heads=6,
    linear_key_head_dim=24,
    linear_value_head_dim=40,
    rms_norm_eps=3e-6,
)
EXPERTS = dict(
    num_experts=6,
    num_experts_per_tok=2,
    moe_intermediate_size=28,
    shared_expert_intermediate_size=36,
)
# Every expert is chosen: otherwise single choices that rounding tips over decide how far bfloat16 is from float32.
ALL_CHOSEN = dict(num_experts_per_tok=EXPERTS["num_experts"])
VISION = dict(depth=1, hidden_size=16, intermediate_size=16, num_heads=2, patch_size=4, out_hidden_size=TEXT["hidden_size"],
              num_position_embeddings=16)
YARN = {"rope_type": "yarn", "rope_theta": 200.0, "factor": 4.0, "original_max_position_embeddings": 32,
        "partial_rotary_factor": 0.5}


def layer_types(letters):
    names = {"D": LINEAR, "*": ATTENTION}
    return dict(layer_types=[names[letter] for letter in letters], num_hidden_layers=len(letters))


def stack_experts(tensors, config):
    """One tensor for all experts of a layer, as transformers holds them: of the first projections gate above up."""
    experts = (config.get("text_config") or config)["num_experts"]
    for name in [name for name in tensors if ".experts.0.gate_proj." in name]:
        stem = name[:name.index("0.gate_proj.")]

        def each(projection):
            return torch.stack([tensors.pop(f"{stem}{i}.{projection}.weight") for i in range(experts)])

        tensors[f"{stem}gate_up_proj"] = torch.cat([each("gate_proj"), each("up_proj")], dim=1)
        tensors[f"{stem}down_proj"] = each("down_proj")


def say_interval(config, interval):
    """Every `interval`-th layer attends, instead of a list."""
    expected = [ATTENTION if (i + 1) % interval == 0 else LINEAR for i in range(config["num_hidden_layers"])]
    assert config.pop("layer_types") == expected
    config["full_attention_interval"] = interval


def add_prediction_head(tensors):
    """Weights of multi-token prediction, which published folders hold beside the model."""
    tensors["mtp.fc.weight"] = torch.randn(8, 16)
    tensors["mtp.layers.0.input_layernorm.weight"] = torch.randn(8)


def published_keys(config):
    """Keys of published text models that change nothing."""
    config.update(full_attention_interval=4, attn_output_gate=True, mamba_ssm_dtype="float32", mtp_num_hidden_layers=1,
                  mtp_use_dedicated_embeddings=False)
    config["rope_parameters"].update(mrope_section=[11, 11, 10], mrope_interleaved=True)


class QwenParity(parity.ParityTest):
    """Base of the three types' tests."""

    arms = parity.DELTA_RULE_ARMS

    @staticmethod
    def case(layers, *, dtype="float32", shards=1, rewrite=None, seed=0, **settings):
        return parity.Case({**settings, **layer_types(layers)}, dtype, shards, rewrite=rewrite, seed=seed,
                           tokens=parity.DELTA_RULE_TOKENS)

    @staticmethod
    def wrapped(case):
        """The same language model in a folder with an image encoder."""
        case.settings = dict(text_config=case.settings, vision_config=VISION,
                             tie_word_embeddings=case.settings.get("tie_word_embeddings", False))
        return case
