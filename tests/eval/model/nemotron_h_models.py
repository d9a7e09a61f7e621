"""Small random nemotron_h models, built and saved by transformers, with weights that all matter."""

import json
import pathlib

import torch
from transformers import NemotronHConfig, NemotronHForCausalLM

# Sizes are odd on purpose (hidden 72, 88: no multiples of 32), groups are many and few, and every switch has both positions.
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

CONFIGS = {
    # name: (config, how the folder is written)
    "groups": (dict(layers="M-*M", use_bias=True, mlp_bias=True, use_conv_bias=False), dict()),
    "wide_state": (
        dict(layers="*M-M", mamba_head_dim=64, ssm_state_size=128, mamba_num_heads=4, n_groups=1, hidden_size=88),
        dict(max_shard_size="90KB"),
    ),
    "narrow_heads": (
        dict(layers="MM*-", mamba_head_dim=8, ssm_state_size=40, mamba_num_heads=10, n_groups=5, conv_kernel=3,
             num_attention_heads=3, num_key_value_heads=3, residual_in_fp32=True),
        dict(dtype=torch.bfloat16),
    ),
    "tied": (
        dict(layers="-MM*M", mamba_head_dim=16, ssm_state_size=24, mamba_num_heads=8, n_groups=2,
             tie_word_embeddings=True, time_step_min=0.02),
        dict(drop_head=True, prefix="model.", dtype=torch.float16),
    ),
}

LAYER_NAMES = {"M": "linear_attention", "*": "full_attention", "-": "mlp"}


def build_model(name, seed=0):
    """A float32 model whose parameters are all away from zero, one and one another."""
    torch.manual_seed(seed)
    settings = {**BASE, **CONFIGS[name][0]}
    settings["layers_block_type"] = [LAYER_NAMES[letter] for letter in settings.pop("layers")]
    model = NemotronHForCausalLM(NemotronHConfig(**settings)).eval()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            parameter.copy_(random_values(key, parameter.shape))
    return model


def random_values(key, shape):
    noise = torch.randn(shape)
    if key.endswith("A_log"):
        return 0.8 * noise  # A from about -0.2 to -5: memory of a few to a few dozen tokens
    if key.endswith("dt_bias"):
        return -1.5 + noise
    if key.endswith("norm.weight") or key.endswith("norm_f.weight") or key.endswith(".D"):
        return 1.0 + 0.3 * noise
    if key.endswith("conv1d.weight"):
        return 0.5 * noise
    if key.endswith("bias"):
        return 0.3 * noise
    if key.endswith("embeddings.weight"):
        return noise
    return noise * (1.2 / shape[-1] ** 0.5)


def save_model(model, name, folder):
    """Writes the folder as its recipe says and returns the model as a reader of that folder must see it."""
    recipe = CONFIGS[name][1]
    stored = recipe.get("dtype", torch.float32)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.to(stored))  # round first, so that float32 arithmetic on both sides is comparable
        if recipe.get("drop_head"):
            model.lm_head.weight.copy_(model.model.embeddings.weight)
    model.to(stored).save_pretrained(folder, max_shard_size=recipe.get("max_shard_size", "1GB"))
    rewrite_tensors(folder, recipe)
    return model.to(torch.float32)


def rewrite_tensors(folder, recipe):
    """Another prefix and a head that is left out, as other writers of such folders do."""
    if "prefix" not in recipe and "drop_head" not in recipe:
        return
    from safetensors.torch import load_file, save_file

    file = pathlib.Path(folder) / "model.safetensors"
    tensors = load_file(file)
    renamed = {}
    for key, tensor in tensors.items():
        if recipe.get("drop_head") and key == "lm_head.weight":
            continue
        renamed[key.replace("backbone.", recipe.get("prefix", "backbone."), 1)] = tensor.contiguous()
    save_file(renamed, file, metadata={"format": "pt"})


def reference_logits(model, ids):
    """float32 [tokens, vocab] of one call, the path whose arithmetic transformers documents."""
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False).logits[0].float().numpy()


def write_ids(file, ids):
    pathlib.Path(file).write_text(json.dumps(ids))
