"""Small checkpoints of random weights in the layout that transformers publishes, made from a seed: other architectures than the
bundled ones, for comparison with lm-evaluation-harness. Weights come from NumPy's generator, whose numbers are the same
on every machine; `digest` says whether they are.
"""

import hashlib
import json
import pathlib
import shutil

import numpy
import safetensors.torch
import torch
import transformers

TOKENIZER = pathlib.Path(__file__).resolve().parents[4] / "checkpoints" / "tiny-nemotron-h"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json")
COMMON = {"vocab_size": 4096, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "tie_word_embeddings": False}

# Groups and heads of which none are alike, experts, both kinds of recurrence; bamba's context is shorter than some requests.
MODELS = {
    "random-bamba": ("Bamba", dict(
        hidden_size=72, intermediate_size=100, num_hidden_layers=4, attn_layer_indices=[1], num_attention_heads=6,
        num_key_value_heads=2, mamba_n_heads=6, mamba_n_groups=3, mamba_d_head=24, mamba_d_state=16, mamba_chunk_size=16,
        max_position_embeddings=48)),
    "random-falcon-h1": ("FalconH1", dict(
        hidden_size=72, intermediate_size=104, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
        mamba_d_ssm=96, mamba_n_heads=6, mamba_d_head=16, mamba_n_groups=3, mamba_d_state=24, mamba_chunk_size=16,
        max_position_embeddings=512, key_multiplier=0.61, ssm_out_multiplier=0.77,
        ssm_multipliers=[0.73, 1.21, 0.57, 1.43, 0.89])),
    "random-qwen3-next": ("Qwen3Next", dict(
        hidden_size=72, intermediate_size=44, num_hidden_layers=4, num_attention_heads=6, num_key_value_heads=2, head_dim=24,
        layer_types=["linear_attention", "linear_attention", "full_attention", "linear_attention"],
        linear_num_key_heads=2, linear_num_value_heads=6, linear_key_head_dim=24, linear_value_head_dim=40, num_experts=6,
        num_experts_per_tok=2, moe_intermediate_size=28, shared_expert_intermediate_size=36, max_position_embeddings=512)),
}


def values(random, key, shape):
    """Of a parameter, far enough from zero and one that it matters."""
    noise = random.standard_normal(shape)
    module, _, leaf = key.rpartition(".")
    if leaf == "A_log":
        return 0.8 * noise
    if leaf == "dt_bias":
        return -1.5 + noise
    if leaf == "D" or (leaf == "weight" and len(shape) == 1):
        return 1.0 + 0.3 * noise
    if module.endswith("conv1d"):
        return 0.5 * noise
    if leaf == "bias":
        return 0.3 * noise
    return noise if "embed" in module else noise * (1.2 / shape[-1] ** 0.5)


def make(name, folder):
    """Writes the checkpoint folder, tokenizer included."""
    family, settings = MODELS[name]
    config = getattr(transformers, f"{family}Config")(**COMMON, **settings)
    model = getattr(transformers, f"{family}ForCausalLM")(config).eval()
    random = numpy.random.default_rng(list(name.encode()))
    with torch.no_grad():
        for key, tensor in sorted(model.state_dict().items()):
            tensor.copy_(torch.from_numpy(values(random, key, tuple(tensor.shape)).astype(numpy.float32)))
    folder = pathlib.Path(folder)
    model.save_pretrained(folder)
    for file in TOKENIZER_FILES:
        shutil.copy(TOKENIZER / file, folder)
    return folder


def digest(folder):
    """sha256 of config.json's meaning and every tensor's bytes, by name."""
    config = json.loads((pathlib.Path(folder) / "config.json").read_text(encoding="utf-8"))
    config.pop("transformers_version", None)
    state = hashlib.sha256(json.dumps(config, sort_keys=True).encode())
    for file in sorted(pathlib.Path(folder).glob("*.safetensors")):
        for name, tensor in sorted(safetensors.torch.load_file(file).items()):
            state.update(name.encode() + tensor.numpy().tobytes())
    return state.hexdigest()
