"""qwen3_next in its training form: Gated DeltaNet, partly rotated attention with a gated output, SwiGLU MLPs (dense).

A layer is a mixer and an MLP. Norms are zero-centred (multiply by 1 + weight),
except the one after the recurrence. Orders of projected channels follow the published code: per key head
q | k | values | gates, per key head betas | decays, per attention head query | gate; the convolution's are flat q | k | v.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from causal_conv import causal_conv_silu
from gated_delta import gated_delta_rule
from parts import linear, rms_norm

EMBEDDINGS, FINAL_NORM, HEAD = "model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"


@dataclass(frozen=True)
class Config:
    model_type: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    layer_types: tuple
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    partial_rotary_factor: float
    rope_theta: float
    linear_conv_kernel_dim: int
    linear_key_head_dim: int
    linear_value_head_dim: int
    linear_num_key_heads: int
    linear_num_value_heads: int
    rms_norm_eps: float
    bos_token_id: int
    eos_token_id: int
    num_experts: int = 0
    chunk_size: int = 64

    norm_offset = 1.0  # a norm multiplies by its weight plus this

    def __post_init__(self):
        if self.num_experts:
            raise SystemExit(f"num_experts is {self.num_experts}: only dense MLPs (0) are trained here")

    @property
    def norm_eps(self):
        return self.rms_norm_eps

    @property
    def values_per_key(self):
        return self.linear_num_value_heads // self.linear_num_key_heads


def norm(x, weight, config):
    return rms_norm(x, 1.0 + weight, config.rms_norm_eps)


def unit(x):
    """L2 norm over the last dimension; the eps stands inside the root, as in the kernels that models are trained with."""
    x = x.float()
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)


def flat_projections(in_proj_qkvz, in_proj_ba, config):
    """Weights of the projections to flat q | k | v, to z and to b | a: reordering weights is cheaper than activations."""
    key_heads, each, hidden = config.linear_num_key_heads, config.values_per_key, config.hidden_size
    key_dim, values = config.linear_key_head_dim, each * config.linear_value_head_dim
    parts = in_proj_qkvz.view(key_heads, -1, hidden).split([key_dim, key_dim, values, values], dim=1)
    q, k, v, z = (part.reshape(-1, hidden) for part in parts)
    b, a = (part.reshape(-1, hidden) for part in in_proj_ba.view(key_heads, -1, hidden).split([each, each], dim=1))
    return torch.cat([q, k, v]), z, torch.cat([b, a])


def gated_delta_block(residual, input_norm, in_proj_qkvz, in_proj_ba, conv_weight, dt_bias, a_log, gated_norm, out_proj,
                      config, dtype):
    batch, length, _ = residual.shape
    key_heads, key_dim, value_dim = config.linear_num_key_heads, config.linear_key_head_dim, config.linear_value_head_dim
    heads = config.linear_num_value_heads

    h = norm(residual, input_norm, config).to(dtype)
    qkv_proj, z_proj, ba_proj = flat_projections(in_proj_qkvz, in_proj_ba, config)
    b, a = linear(h, ba_proj).float().chunk(2, dim=-1)
    z = linear(h, z_proj).view(batch, length, heads, value_dim)
    qkv = causal_conv_silu(linear(h, qkv_proj), conv_weight)
    q, k, v = qkv.split([key_heads * key_dim, key_heads * key_dim, heads * value_dim], dim=-1)
    q = (unit(q.view(batch, length, key_heads, key_dim)) * key_dim ** -0.5).to(dtype)
    k = unit(k.view(batch, length, key_heads, key_dim)).to(dtype)
    log_decay = -a_log.float().exp() * F.softplus(a + dt_bias.float())
    y = gated_delta_rule(q, k, v.view(batch, length, heads, value_dim), log_decay, b.sigmoid(), config.chunk_size)

    # Norm before gate, per head.
    y = rms_norm(y, gated_norm, config.rms_norm_eps) * F.silu(z.float())
    return residual + linear(y.reshape(batch, length, heads * value_dim).to(dtype), out_proj).float()


def gated_delta_parameters(config):
    hidden, heads = config.hidden_size, config.linear_num_value_heads
    keys = config.linear_num_key_heads * config.linear_key_head_dim
    values = heads * config.linear_value_head_dim
    conv = 2 * keys + values
    # Steps between 0.001 and 0.1, log-uniformly, as Gated DeltaNet is initialised; A_log spreads the heads' memories.
    dt = torch.exp(torch.rand(heads) * (math.log(0.1) - math.log(0.001)) + math.log(0.001))
    return {
        "linear_attn.in_proj_qkvz.weight": torch.randn(conv + values, hidden) * 0.5 * hidden ** -0.5,
        "linear_attn.in_proj_ba.weight": torch.randn(2 * heads, hidden) * 0.5 * hidden ** -0.5,
        "linear_attn.conv1d.weight": (torch.rand(conv, 1, config.linear_conv_kernel_dim) * 2 - 1)
        * config.linear_conv_kernel_dim ** -0.5,
        "linear_attn.dt_bias": dt + torch.log(-torch.expm1(-dt)),
        "linear_attn.A_log": torch.log(torch.arange(1, heads + 1).float()),
        "linear_attn.norm.weight": torch.ones(config.linear_value_head_dim),
        "linear_attn.out_proj.weight": torch.randn(hidden, values) * 0.2 * values ** -0.5,
    }


def rotate(x, config):
    """Rotary positions on the first part of each head: pairs (i, i + half), angles pos * theta^(-2i / rotated)."""
    rotated = int(config.head_dim * config.partial_rotary_factor)
    half = rotated // 2
    frequency = config.rope_theta ** (-torch.arange(half, device=x.device, dtype=torch.float32) * 2 / rotated)
    angle = torch.arange(x.shape[-2], device=x.device, dtype=torch.float32)[:, None] * frequency
    first, second, rest = x.split([half, half, config.head_dim - rotated], dim=-1)
    return torch.cat([first * angle.cos() - second * angle.sin(), second * angle.cos() + first * angle.sin(), rest], -1)


def attention_block(residual, input_norm, q_proj, k_proj, v_proj, q_norm, k_norm, o_proj, config, dtype):
    batch, length, _ = residual.shape
    heads, kv_heads, dim = config.num_attention_heads, config.num_key_value_heads, config.head_dim
    h = norm(residual, input_norm, config).to(dtype)
    q, gate = linear(h, q_proj).view(batch, length, heads, 2 * dim).chunk(2, dim=-1)
    q = rotate(norm(q, q_norm, config).transpose(1, 2), config).to(dtype)
    k = norm(linear(h, k_proj).view(batch, length, kv_heads, dim), k_norm, config)
    k = rotate(k.transpose(1, 2), config).to(dtype)
    v = linear(h, v_proj).view(batch, length, kv_heads, dim).transpose(1, 2)
    k = k.repeat_interleave(heads // kv_heads, dim=1)
    v = v.repeat_interleave(heads // kv_heads, dim=1)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
    y = (y.float() * gate.float().sigmoid()).to(dtype)
    return residual + linear(y.reshape(batch, length, heads * dim), o_proj).float()


def attention_parameters(config):
    hidden, width = config.hidden_size, config.num_attention_heads * config.head_dim
    kv_width = config.num_key_value_heads * config.head_dim
    return {
        "self_attn.q_proj.weight": torch.randn(2 * width, hidden) * 0.5 * hidden ** -0.5,
        "self_attn.k_proj.weight": torch.randn(kv_width, hidden) * 0.5 * hidden ** -0.5,
        "self_attn.v_proj.weight": torch.randn(kv_width, hidden) * 0.5 * hidden ** -0.5,
        "self_attn.q_norm.weight": torch.zeros(config.head_dim),
        "self_attn.k_norm.weight": torch.zeros(config.head_dim),
        "self_attn.o_proj.weight": torch.randn(hidden, width) * 0.2 * width ** -0.5,
    }


def mlp_block(residual, post_norm, gate_proj, up_proj, down_proj, config, dtype):
    h = norm(residual, post_norm, config).to(dtype)
    return residual + linear(F.silu(linear(h, gate_proj)) * linear(h, up_proj), down_proj).float()


def mlp_parameters(config):
    hidden, inner = config.hidden_size, config.intermediate_size
    return {
        "mlp.gate_proj.weight": torch.randn(inner, hidden) * 0.5 * hidden ** -0.5,
        "mlp.up_proj.weight": torch.randn(inner, hidden) * 0.5 * hidden ** -0.5,
        "mlp.down_proj.weight": torch.randn(hidden, inner) * 0.2 * inner ** -0.5,
    }


MLP_PARAMETERS = 4  # with its norm


def with_mlp(mixer, residual, *arguments):
    """A whole layer: one graph to compile and to call instead of two."""
    *parameters, config, dtype = arguments
    residual = mixer(residual, *parameters[:-MLP_PARAMETERS], config, dtype)
    return mlp_block(residual, *parameters[-MLP_PARAMETERS:], config, dtype)


# Two functions, because torch.compile keeps what it compiled by the function's code.
def linear_layer(residual, *arguments):
    return with_mlp(gated_delta_block, residual, *arguments)


def attention_layer(residual, *arguments):
    return with_mlp(attention_block, residual, *arguments)


BLOCKS = {"linear_attention": linear_layer, "full_attention": attention_layer}
MIXER_PARAMETERS = {"linear_attention": gated_delta_parameters, "full_attention": attention_parameters}


def layers(config):
    """(block, its parameters' published names and initial values in the order that the block takes them), in turn."""
    for index, kind in enumerate(config.layer_types):
        parameters = {"input_layernorm.weight": torch.zeros(config.hidden_size), **MIXER_PARAMETERS[kind](config),
                      "post_attention_layernorm.weight": torch.zeros(config.hidden_size), **mlp_parameters(config)}
        yield kind, {f"model.layers.{index}.{name}": value for name, value in parameters.items()}
