#!/usr/bin/env python3
"""Write random bfloat16 weights for a nemotron_h config.json as a sharded checkpoint folder: something of full size to
measure loading with.

    random_checkpoint.py CONFIG.json OUT [--shard-gib 4] [--seed 0] [--device cuda]

Tensor names and shapes are those that transformers gives the model of this configuration, so that the folder is loaded
through the same checks as a published one.
"""

import argparse
import json
import math
import pathlib
import shutil
import time

import torch
from safetensors.torch import save_file


def shapes_of(config_file):
    """{tensor name: shape} of the model, from transformers, without memory for its weights."""
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(config_file.parent)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


def published_name(name):
    """transformers calls the trunk `model.` inside; folders are published with `backbone.`."""
    return "backbone." + name.removeprefix("model.") if name.startswith("model.") else name


def random_tensor(name, shape, device):
    kind = name.rsplit(".", 1)[-1]
    if kind == "A_log":
        return torch.rand(shape, device=device).mul(15).add(1).log()
    if kind == "dt_bias":  # softplus of it between 0.001 and 0.1, evenly in the logarithm
        dt = torch.rand(shape, device=device).mul(math.log(100.0)).add(math.log(0.001)).exp()
        return dt + torch.log(-torch.expm1(-dt))
    if kind == "D" or (kind == "weight" and len(shape) == 1):
        return torch.ones(shape, device=device)
    return torch.randn(shape, device=device) * 0.02


def shards_of(shapes, limit):
    shard, size = [], 0
    for name, shape in shapes.items():
        bytes_ = 2 * math.prod(shape)
        if shard and size + bytes_ > limit:
            yield shard
            shard, size = [], 0
        shard.append(name)
        size += bytes_
    yield shard


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("config", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--shard-gib", type=float, default=4.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()

    torch.manual_seed(arguments.seed)
    start = time.monotonic()
    shapes = shapes_of(arguments.config)
    shards = list(shards_of(shapes, int(arguments.shard_gib * 2**30)))
    arguments.out.mkdir(parents=True, exist_ok=True)
    shutil.copy(arguments.config, arguments.out / "config.json")
    index, total = {}, 0
    for number, names in enumerate(shards, 1):
        file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        tensors = {}
        for name in names:
            tensors[published_name(name)] = random_tensor(name, shapes[name], arguments.device).bfloat16().cpu()
        save_file(tensors, arguments.out / file, metadata={"format": "pt"})
        index.update({name: file for name in tensors})
        total += sum(2 * tensor.numel() for tensor in tensors.values())
    (arguments.out / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": total}, "weight_map": index}, indent=1) + "\n", encoding="utf-8")
    print(f"{total / 2**30:.2f} GiB in {len(shards)} shards in {time.monotonic() - start:.1f} s")


if __name__ == "__main__":
    main()
