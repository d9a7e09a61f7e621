"""Checkpoint folders: sharded safetensors and their index, as published checkpoints have them."""

import json
import os

import torch


def save_shards(model, folder, dtype=torch.bfloat16, shard_bytes=8 << 20, stem="model"):
    from safetensors.torch import save_file
    shards, size = [{}], 0
    for name, value in model.state_dict().items():
        value = value.detach().to("cpu", dtype).contiguous()
        if shards[-1] and size + value.nbytes > shard_bytes:
            shards.append({})
            size = 0
        shards[-1][name] = value
        size += value.nbytes
    os.makedirs(folder, exist_ok=True)
    where = {}
    for index, shard in enumerate(shards):
        file = f"{stem}-{index + 1:05d}-of-{len(shards):05d}.safetensors"
        save_file(shard, os.path.join(folder, file), metadata={"format": "pt"})
        where.update({name: file for name in shard})
    total = sum(value.nbytes for shard in shards for value in shard.values())
    with open(os.path.join(folder, stem + ".safetensors.index.json"), "w", encoding="utf-8") as stream:
        json.dump({"metadata": {"total_size": total}, "weight_map": where}, stream, indent=2, sort_keys=True)
        stream.write("\n")


def load_shards(model, folder, stem="model"):
    from safetensors.torch import load_file
    with open(os.path.join(folder, stem + ".safetensors.index.json"), encoding="utf-8") as stream:
        files = sorted(set(json.load(stream)["weight_map"].values()))
    state = {}
    for file in files:
        state.update(load_file(os.path.join(folder, file)))
    model.load_state_dict({name: value.float() for name, value in state.items()})
    return model
