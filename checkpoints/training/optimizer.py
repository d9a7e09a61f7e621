"""Muon for the matrices inside layers, AdamW for everything else.

Muon replaces a matrix's momentum by the nearest orthogonal matrix (five Newton-Schulz steps in bfloat16), so that all
directions of a weight learn at one speed; on models this small it saves a good part of the tokens. Matrices of one shape
go through the iteration together.
"""

import torch


def orthogonalize(g, steps=5):
    """g [K, rows, cols]: approximately U V^T of every matrix's singular value decomposition."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.transpose(-1, -2)
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        s = x @ x.transpose(-1, -2)
        x = a * x + (b * s + c * (s @ s)) @ x
    return x.transpose(-1, -2) if tall else x


class Muon:
    def __init__(self, parameters, lr, momentum=0.95, weight_decay=0.1):
        self.base_lr, self.momentum, self.weight_decay = lr, momentum, weight_decay
        shapes = {}
        for p in parameters:
            shapes.setdefault(tuple(p.shape), []).append(p)
        self.groups = [(group, torch.zeros(len(group), *shape, device=group[0].device)) for shape, group in shapes.items()]

    @torch.no_grad()
    def step(self, factor):
        lr = self.base_lr * factor
        for group, buffer in self.groups:
            gradient = torch.stack([p.grad for p in group])
            buffer.lerp_(gradient, 1 - self.momentum)
            update = orthogonalize(gradient.lerp(buffer, self.momentum))
            rows, cols = group[0].shape
            scale = max(1.0, rows / cols) ** 0.5
            torch._foreach_mul_(group, 1 - lr * self.weight_decay)
            torch._foreach_add_(group, list(update.float().unbind(0)), alpha=-lr * scale)


class Optimizer:
    """Both halves behind one step(); `factor` is the schedule's multiple of the base learning rates."""

    def __init__(self, model, muon_lr=0.02, adam_lr=3e-3):
        matrices, vectors, tables = [], [], []
        for name, p in model.named_parameters():
            if p.ndim == 2 and "layers" in name:
                matrices.append(p)
            elif p.ndim == 2:
                tables.append(p)
            else:
                vectors.append(p)
        self.muon = Muon(matrices, muon_lr)
        fused = matrices[0].is_cuda
        self.adam = torch.optim.AdamW(
            [{"params": tables, "lr": adam_lr, "weight_decay": 0.01}, {"params": vectors, "lr": adam_lr, "weight_decay": 0.0}],
            betas=(0.9, 0.95), eps=1e-10, fused=fused)
        self.base = [group["lr"] for group in self.adam.param_groups]
        self.parameters = matrices + tables + vectors

    def step(self, factor):
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.muon.step(factor)
        for group, lr in zip(self.adam.param_groups, self.base):
            group["lr"] = lr * factor
        self.adam.step()
        for p in self.parameters:
            p.grad = None
        return norm

    def state(self):
        return {"muon": [buffer for _, buffer in self.muon.groups], "adam": self.adam.state_dict()}

    def load_state(self, state):
        for (_, buffer), saved in zip(self.muon.groups, state["muon"], strict=True):
            buffer.copy_(saved)
        self.adam.load_state_dict(state["adam"])
