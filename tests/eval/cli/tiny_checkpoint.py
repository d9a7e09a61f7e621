"""A nemotron_h folder of a few thousand random weights with a tokenizer of its own, for tests of whole commands."""

import json
import pathlib

import numpy
import safetensors.numpy
import sentencepiece

CONFIG = {
    "architectures": ["NemotronHForCausalLM"],
    "model_type": "nemotron_h",
    "dtype": "float32",
    "vocab_size": 300,
    "hidden_size": 40,
    "hybrid_override_pattern": "M-*M",
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "intermediate_size": 56,
    "mlp_hidden_act": "relu2",
    "mlp_bias": False,
    "mamba_num_heads": 3,
    "mamba_head_dim": 8,
    "mamba_hidden_act": "silu",
    "ssm_state_size": 16,
    "n_groups": 1,
    "conv_kernel": 4,
    "use_conv_bias": True,
    "use_bias": False,
    "time_step_min": 1e-30,
    "layer_norm_epsilon": 1e-5,
    "residual_in_fp32": False,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}

SENTENCES = (
    "the river carries what the rain has taken from the hills",
    "every ledger must balance before the last lamp goes out",
    "a small machine may hold a long memory if it writes with care",
    "nobody remembers who planted the orchard behind the mill",
    "seven bells rang twice and then the harbour fell silent",
)


def _weights(config):
    random = numpy.random.default_rng(3)

    def normal(*shape, scale=0.25):
        return (random.standard_normal(shape) * scale).astype(numpy.float32)

    hidden = config["hidden_size"]
    inner = config["mamba_num_heads"] * config["mamba_head_dim"]
    conv = inner + 2 * config["n_groups"] * config["ssm_state_size"]
    heads = config["mamba_num_heads"]
    query = config["num_attention_heads"] * config["head_dim"]
    key = config["num_key_value_heads"] * config["head_dim"]
    weights = {
        "backbone.embeddings.weight": normal(config["vocab_size"], hidden, scale=1.0),
        "backbone.norm_f.weight": 1 + normal(hidden),
        "lm_head.weight": normal(config["vocab_size"], hidden),
    }
    for index, kind in enumerate(config["hybrid_override_pattern"]):
        layer = f"backbone.layers.{index}."
        mixer = layer + "mixer."
        weights[layer + "norm.weight"] = 1 + normal(hidden)
        if kind == "M":
            weights[mixer + "in_proj.weight"] = normal(inner + conv + heads, hidden)
            weights[mixer + "conv1d.weight"] = normal(conv, 1, config["conv_kernel"], scale=0.5)
            weights[mixer + "conv1d.bias"] = normal(conv)
            weights[mixer + "A_log"] = numpy.log(random.uniform(1, 8, heads)).astype(numpy.float32)
            weights[mixer + "D"] = normal(heads, scale=1.0)
            weights[mixer + "dt_bias"] = normal(heads, scale=1.0) - 2
            weights[mixer + "norm.weight"] = 1 + normal(inner)
            weights[mixer + "out_proj.weight"] = normal(hidden, inner)
        elif kind == "*":
            weights[mixer + "q_proj.weight"] = normal(query, hidden)
            weights[mixer + "k_proj.weight"] = normal(key, hidden)
            weights[mixer + "v_proj.weight"] = normal(key, hidden)
            weights[mixer + "o_proj.weight"] = normal(hidden, query)
        else:
            weights[mixer + "up_proj.weight"] = normal(config["intermediate_size"], hidden)
            weights[mixer + "down_proj.weight"] = normal(hidden, config["intermediate_size"])
    return weights


def text(words, seed=0):
    """Plain English-looking text of about `words` words."""
    random = numpy.random.default_rng(seed)
    vocabulary = " ".join(SENTENCES).split()
    chosen = random.choice(vocabulary, size=words)
    return " ".join(" ".join(chosen[i : i + 12]) + "." for i in range(0, words, 12))


def write_weights(folder, weights, shards=2):
    names = sorted(weights)
    parts = [names[i::shards] for i in range(shards)]
    weight_map = {}
    for number, part in enumerate(parts, 1):
        file = f"model-{number:05}-of-{shards:05}.safetensors"
        safetensors.numpy.save_file({name: weights[name] for name in part}, str(folder / file))
        weight_map.update({name: file for name in part})
    total = sum(value.nbytes for value in weights.values())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def make_checkpoint(folder, change=None):
    """Writes the folder; `change(config, weights)` may spoil it first."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    config = dict(CONFIG)
    weights = _weights(config)
    if change is not None:
        change(config, weights)
    write_weights(folder, weights)
    (folder / "config.json").write_text(json.dumps(config))
    corpus = folder / "corpus.txt"
    corpus.write_text("\n".join([*SENTENCES, *(text(60, seed) for seed in range(50))]))
    sentencepiece.SentencePieceTrainer.train(
        input=str(corpus), model_prefix=str(folder / "tokenizer"), vocab_size=300, model_type="bpe", byte_fallback=True,
        bos_id=1, eos_id=2, unk_id=0, minloglevel=2, num_threads=1)
    corpus.unlink()
    (folder / "tokenizer.vocab").unlink()
    return folder
