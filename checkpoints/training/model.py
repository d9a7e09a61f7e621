"""A hybrid in its training form: parallel over the sequence, in plain PyTorch, parameters named as published.

An architecture is a module with a `Config`, `BLOCKS` (one function of tensors a kind of layer, so that torch.compile
makes one graph a kind and shape and all layers of that kind share it), `layers(config)` and the names of the tables.
Adding one is such a module and a line in ARCHITECTURES; data, optimizer, schedule and evaluation stay as they are.

`dtype` is the type of the matrix products. Decays, softplus, norms and the residual stream are float32 always: a decay
of 0.998 does not survive bfloat16.
"""

import json

import torch
import torch.nn.functional as F
from torch import nn

import nemotron_h
import qwen3_next
from parts import linear, rms_norm, token_losses

ARCHITECTURES = {"nemotron_h": nemotron_h, "qwen3_next": qwen3_next}


def read_config(path):
    """The `Config` of the architecture that a config.json names; keys that training does not read are left out."""
    with open(path, encoding="utf-8") as stream:
        values = json.load(stream)
    if values.get("model_type") not in ARCHITECTURES:
        raise SystemExit(f"{path}: model_type {values.get('model_type')!r}, expected one of {sorted(ARCHITECTURES)}")
    values.update(values.get("rope_parameters") or {})
    kind = ARCHITECTURES[values["model_type"]].Config
    known = {name: tuple(values[name]) if isinstance(values[name], list) else values[name]
             for name in kind.__dataclass_fields__ if name in values}
    return kind(**known)


class Holder(nn.Module):
    """A node of the published names' tree."""


def set_parameter(root, name, value):
    *path, last = name.split(".")
    for part in path:
        if not hasattr(root, part):
            setattr(root, part, Holder())
        root = getattr(root, part)
    parameter = nn.Parameter(value)
    setattr(root, last, parameter)
    return parameter


class Hybrid(nn.Module):
    """Embeddings, layers, final norm, untied head; state_dict keys are the published ones."""

    def __init__(self, config, compiled=False):
        super().__init__()
        self.config = config
        self.architecture = architecture = ARCHITECTURES[config.model_type]
        set_parameter(self, architecture.EMBEDDINGS, torch.randn(config.vocab_size, config.hidden_size) * 0.1)
        # The layers' parameters in a list too: looking a hundred of them up by name at every step is slow.
        self.layers = [(kind, [set_parameter(self, name, value) for name, value in parameters.items()])
                       for kind, parameters in architecture.layers(config)]
        set_parameter(self, architecture.FINAL_NORM, torch.full((config.hidden_size,), 1.0 - config.norm_offset))
        set_parameter(self, architecture.HEAD, torch.randn(config.vocab_size, config.hidden_size) * 0.02)
        wrap = (lambda f: torch.compile(f, dynamic=False)) if compiled else (lambda f: f)
        self.blocks = {kind: wrap(block) for kind, block in architecture.BLOCKS.items()}
        self.losses_function = wrap(token_losses)

    def hidden(self, ids, dtype):
        x = F.embedding(ids, self.get_parameter(self.architecture.EMBEDDINGS)).float()
        for kind, parameters in self.layers:
            x = self.blocks[kind](x, *parameters, self.config, dtype)
        return x

    def final_norm(self):
        return self.get_parameter(self.architecture.FINAL_NORM) + self.config.norm_offset

    def losses(self, ids, targets, dtype=torch.float32):
        """[B,T] token ids and what follows each: [B,T] cross entropies. T is a multiple of the chunk size."""
        return self.losses_function(self.hidden(ids, dtype), self.final_norm(),
                                    self.get_parameter(self.architecture.HEAD), targets, self.config.norm_eps, dtype)

    def logits(self, ids, dtype=torch.float32):
        """Any length: padded on the right to whole chunks, which a causal model does not notice."""
        length, chunk = ids.shape[1], self.config.chunk_size
        x = self.hidden(F.pad(ids, (0, -length % chunk)), dtype)[:, :length]
        x = rms_norm(x, self.final_norm(), self.config.norm_eps).to(dtype)
        return linear(x, self.get_parameter(self.architecture.HEAD)).float()
