"""nemotron_h in its training form: Mamba-2, attention without positions and relu² MLPs, one mixer a layer."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from causal_conv import causal_conv_silu
from parts import linear, rms_norm

EMBEDDINGS, FINAL_NORM, HEAD = "backbone.embeddings.weight", "backbone.norm_f.weight", "lm_head.weight"


@dataclass(frozen=True)
class Config:
    model_type: str
    vocab_size: int
    hidden_size: int
    hybrid_override_pattern: str
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    intermediate_size: int
    mamba_num_heads: int
    mamba_head_dim: int
    ssm_state_size: int
    n_groups: int
    conv_kernel: int
    layer_norm_epsilon: float
    bos_token_id: int
    eos_token_id: int
    chunk_size: int = 128

    norm_offset = 0.0  # a norm multiplies by its weight plus this

    @property
    def norm_eps(self):
        return self.layer_norm_epsilon


def chunked_scan(x, dt, a, b, c, chunk):
    """y_t = S_t c_t with S_t = exp(a dt_t) S_{t-1} + dt_t x_t b_t^T, chunk by chunk.

    x [B,T,H,P], dt [B,T,H] float32, a [H] float32 (negative), b and c [B,T,G,N]; T is a multiple of `chunk`.
    Inside a chunk the recurrence is a masked product; between chunks only one state a chunk is carried.
    """
    batch, length, heads, head_dim = x.shape
    groups, states = b.shape[2:]
    n, dtype, per_group = length // chunk, x.dtype, heads // groups

    log_decay = (dt * a).view(batch, n, chunk, heads).permute(0, 1, 3, 2).contiguous()
    total = log_decay.cumsum(-1)                                                  # [B,n,H,Q]
    xdt = (x.float() * dt[..., None]).view(batch, n, chunk, heads, head_dim).permute(0, 1, 3, 2, 4)
    b = b.view(batch, n, chunk, groups, states).permute(0, 1, 3, 2, 4)            # [B,n,G,Q,N]
    c = c.view(batch, n, chunk, groups, states).permute(0, 1, 3, 2, 4)

    # Within the chunk.
    scores = c @ b.transpose(-1, -2)                                              # [B,n,G,Q,Q]
    difference = total[..., :, None] - total[..., None, :]
    causal = torch.ones(chunk, chunk, dtype=torch.bool, device=x.device).tril()
    decay = torch.where(causal, difference, float("-inf")).exp().view(batch, n, groups, per_group, chunk, chunk)
    mixed = (scores.float()[:, :, :, None] * decay).to(dtype).view(batch, n, heads, chunk, chunk)
    y = (mixed @ xdt.to(dtype)).float()                                           # [B,n,H,Q,P]

    # What each chunk adds to the state at its end.
    to_end = (total[..., -1:] - total).exp()
    weighted = (xdt * to_end[..., None]).to(dtype)                                # [B,n,H,Q,P]
    weighted = weighted.view(batch, n, groups, per_group, chunk, head_dim).permute(0, 1, 2, 3, 5, 4)
    weighted = weighted.reshape(batch, n, groups, per_group * head_dim, chunk)
    added = (weighted @ b).view(batch, n, heads, head_dim * states)               # [B,n,H,P*N]

    # The state before each chunk: a lower triangular product over chunks.
    upto = total[..., -1].cumsum(1).permute(0, 2, 1)                              # [B,H,n]
    before = upto - total[..., -1].permute(0, 2, 1)
    earlier = torch.ones(n, n, dtype=torch.bool, device=x.device).tril(-1)
    carry = torch.where(earlier, before[..., :, None] - upto[..., None, :], float("-inf")).exp().to(dtype)
    start = carry @ added.permute(0, 2, 1, 3)                                     # [B,H,n,P*N]
    start = start.view(batch, groups, per_group, n, head_dim, states)
    start = start.permute(0, 3, 1, 5, 2, 4).reshape(batch, n, groups, states, per_group * head_dim)

    carried = (c @ start).float().view(batch, n, groups, chunk, per_group, head_dim).permute(0, 1, 2, 4, 3, 5)
    carried = carried.reshape(batch, n, heads, chunk, head_dim) * total.exp()[..., None]
    return (y + carried).permute(0, 1, 3, 2, 4).reshape(batch, length, heads, head_dim)


def mamba2_block(residual, norm, in_proj, conv_weight, conv_bias, dt_bias, a_log, d, gated_norm, out_proj, config, dtype):
    batch, length, _ = residual.shape
    heads, head_dim = config.mamba_num_heads, config.mamba_head_dim
    groups, states = config.n_groups, config.ssm_state_size
    inner = heads * head_dim

    h = rms_norm(residual, norm, config.norm_eps).to(dtype)
    z, xbc, dt = linear(h, in_proj).split([inner, inner + 2 * groups * states, heads], dim=-1)
    xbc = causal_conv_silu(xbc, conv_weight, conv_bias)
    x, b, c = xbc.split([inner, groups * states, groups * states], dim=-1)
    dt = F.softplus(dt.float() + dt_bias.float())
    x = x.reshape(batch, length, heads, head_dim)
    y = chunked_scan(x, dt, -a_log.float().exp(), b.reshape(batch, length, groups, states),
                     c.reshape(batch, length, groups, states), config.chunk_size)
    y = y + d.float()[:, None] * x.float()

    # Gate before norm, the norm over each group.
    y = y.reshape(batch, length, inner) * F.silu(z.float())
    y = y.view(batch, length, groups, inner // groups)
    y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + config.norm_eps)
    y = (y.reshape(batch, length, inner) * gated_norm.float()).to(dtype)
    return residual + linear(y, out_proj).float()


def mamba2_parameters(config):
    heads, inner = config.mamba_num_heads, config.mamba_num_heads * config.mamba_head_dim
    conv = inner + 2 * config.n_groups * config.ssm_state_size
    # dt between 0.001 and 0.1, log-uniformly, as Mamba-2 is initialised; a_log spreads the heads' memories.
    dt = torch.exp(torch.rand(heads) * (math.log(0.1) - math.log(0.001)) + math.log(0.001))
    return {
        "mixer.in_proj.weight": torch.randn(inner + conv + heads, config.hidden_size) * 0.5 * config.hidden_size ** -0.5,
        "mixer.conv1d.weight": (torch.rand(conv, 1, config.conv_kernel) * 2 - 1) * config.conv_kernel ** -0.5,
        "mixer.conv1d.bias": torch.zeros(conv),
        "mixer.dt_bias": dt + torch.log(-torch.expm1(-dt)),
        "mixer.A_log": torch.log(torch.arange(1, heads + 1).float()),
        "mixer.D": torch.ones(heads),
        "mixer.norm.weight": torch.ones(inner),
        "mixer.out_proj.weight": torch.randn(config.hidden_size, inner) * 0.2 * inner ** -0.5,
    }


def attention_block(residual, norm, q_proj, k_proj, v_proj, o_proj, config, dtype):
    batch, length, _ = residual.shape
    heads, kv_heads, dim = config.num_attention_heads, config.num_key_value_heads, config.head_dim
    h = rms_norm(residual, norm, config.norm_eps).to(dtype)
    q = linear(h, q_proj).view(batch, length, heads, dim).transpose(1, 2)
    k = linear(h, k_proj).view(batch, length, kv_heads, dim).transpose(1, 2)
    v = linear(h, v_proj).view(batch, length, kv_heads, dim).transpose(1, 2)
    k = k.repeat_interleave(heads // kv_heads, dim=1)
    v = v.repeat_interleave(heads // kv_heads, dim=1)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return residual + linear(y.transpose(1, 2).reshape(batch, length, heads * dim), o_proj).float()


def attention_parameters(config):
    hidden, width = config.hidden_size, config.num_attention_heads * config.head_dim
    kv_width = config.num_key_value_heads * config.head_dim
    return {
        "mixer.q_proj.weight": torch.randn(width, hidden) * 0.5 * hidden ** -0.5,
        "mixer.k_proj.weight": torch.randn(kv_width, hidden) * 0.5 * hidden ** -0.5,
        "mixer.v_proj.weight": torch.randn(kv_width, hidden) * 0.5 * hidden ** -0.5,
        "mixer.o_proj.weight": torch.randn(hidden, width) * 0.2 * width ** -0.5,
    }


def mlp_block(residual, norm, up_proj, down_proj, config, dtype):
    h = rms_norm(residual, norm, config.norm_eps).to(dtype)
    return residual + linear(F.relu(linear(h, up_proj)).square(), down_proj).float()


def mlp_parameters(config):
    hidden, inner = config.hidden_size, config.intermediate_size
    return {
        "mixer.up_proj.weight": torch.randn(inner, hidden) * 0.5 * hidden ** -0.5,
        "mixer.down_proj.weight": torch.randn(hidden, inner) * 0.2 * inner ** -0.5,
    }


BLOCKS = {"M": mamba2_block, "*": attention_block, "-": mlp_block}
PARAMETERS = {"M": mamba2_parameters, "*": attention_parameters, "-": mlp_parameters}


def layers(config):
    """(block, its parameters' published names and initial values in the order that the block takes them), in turn."""
    for index, letter in enumerate(config.hybrid_override_pattern):
        parameters = {"norm.weight": torch.ones(config.hidden_size), **PARAMETERS[letter](config)}
        yield letter, {f"backbone.layers.{index}.{name}": value for name, value in parameters.items()}
