"""What the architectures share: norms, products, the loss. Parameters come in as stored, float32."""

import torch
import torch.nn.functional as F


def rms_norm(x, weight, eps):
    """x / rms(x) * weight over the last dimension, float32 whatever x is."""
    x = x.float()
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight.float()


def linear(x, weight):
    return F.linear(x, weight.to(x.dtype))


def token_losses(hidden, norm, head, targets, eps, dtype):
    """Cross entropy of every token, float32."""
    logits = linear(rms_norm(hidden, norm, eps).to(dtype), head).float()
    return torch.logsumexp(logits, -1) - logits.gather(-1, targets[..., None]).squeeze(-1)
