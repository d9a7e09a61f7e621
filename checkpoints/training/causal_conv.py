"""The short causal convolution of Mamba-2 and Gated DeltaNet: depthwise, then SiLU.

On a GPU in bfloat16 it is one kernel each way: written in plain PyTorch it was a quarter of the training step.
"""

import torch
import torch.nn.functional as F

try:
    import triton
    import triton.language as tl
except ImportError:  # builds of PyTorch without CUDA have none; nothing here calls it there
    triton = None

TIME_BLOCK, CHANNEL_BLOCK = 64, 64


def causal_conv_silu(x, weight, bias=None):
    """silu(sum over k of weight[:, 0, k] * x_{t - taps + 1 + k} + bias), x [B,T,C], weight [C,1,taps], bias [C] or none.

    Sums in float32, returns x's type.
    """
    if x.is_cuda and x.dtype == torch.bfloat16:
        return conv_op(x, weight.float().squeeze(1), None if bias is None else bias.float())
    return conv_by_shifts(x, weight.float().squeeze(1), bias)


def conv_by_shifts(x, weight, bias):
    taps, length = weight.shape[-1], x.shape[1]
    padded = F.pad(x, (0, 0, taps - 1, 0)).float()
    out = sum(padded[:, k:k + length] * weight[:, k] for k in range(taps))
    return F.silu(out if bias is None else out + bias.float()).to(x.dtype)


@torch.library.custom_op("replayeval::causal_conv_silu", mutates_args=())
def conv_op(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return conv_forward(x.contiguous(), weight.contiguous(), bias)


@conv_op.register_fake
def _(x, weight, bias):
    return x.new_empty(x.shape)


@torch.library.custom_op("replayeval::causal_conv_silu_backward", mutates_args=())
def conv_backward_op(gradient: torch.Tensor, x: torch.Tensor, weight: torch.Tensor,
                     bias: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients of x, weight [C,taps] and bias [C] (also where there is none)."""
    return conv_backward(gradient.contiguous(), x.contiguous(), weight.contiguous(), bias)


@conv_backward_op.register_fake
def _(gradient, x, weight, bias):
    return x.new_empty(x.shape), weight.new_empty(weight.shape), weight.new_empty(weight.shape[0])


def save_conv(ctx, inputs, output):
    x, weight, bias = inputs
    ctx.save_for_backward(x, weight, bias)


def backward(ctx, gradient):
    x, weight, bias = ctx.saved_tensors
    of_x, of_weight, of_bias = conv_backward_op(gradient, x, weight, bias)
    return of_x, of_weight, None if bias is None else of_bias


conv_op.register_autograd(backward, setup_context=save_conv)


def conv_forward(x, weight, bias):
    out = torch.empty_like(x)
    batch, length, channels = x.shape
    grid = (triton.cdiv(length, TIME_BLOCK), triton.cdiv(channels, CHANNEL_BLOCK), batch)
    conv_forward_kernel[grid](x, weight, weight if bias is None else bias, out, length, channels, weight.shape[1],
                              bias is not None, TIME_BLOCK, CHANNEL_BLOCK)
    return out


def conv_backward(gradient, x, weight, bias):
    batch, length, channels = x.shape
    taps, blocks = weight.shape[1], triton.cdiv(length, TIME_BLOCK)
    before, of_x = torch.empty_like(x), torch.empty_like(x)
    parts = weight.new_empty(batch * blocks, taps + 1, channels)  # weight and bias, a sum for each block of time
    grid = (blocks, triton.cdiv(channels, CHANNEL_BLOCK), batch)
    before_silu_kernel[grid](gradient, x, weight, weight if bias is None else bias, before, parts, length, channels, taps,
                             bias is not None, TIME_BLOCK, CHANNEL_BLOCK)
    of_x_kernel[grid](before, weight, of_x, length, channels, taps, TIME_BLOCK, CHANNEL_BLOCK)
    of_parameters = parts.sum(0)
    return of_x, of_parameters[:taps].t().contiguous(), of_parameters[taps].clone()


if triton is not None:
    @triton.jit
    def before_silu(x_pointer, weight_pointer, bias_pointer, t, channel, T, C, TAPS: tl.constexpr, BIASED: tl.constexpr,
                    TIME: tl.constexpr, CHANNELS: tl.constexpr):
        """[TIME, CHANNELS] sums at the times t of the sequence that x_pointer begins."""
        out = tl.zeros((TIME, CHANNELS), dtype=tl.float32)
        if BIASED:
            out += tl.load(bias_pointer + channel, mask=channel < C, other=0.0)[None, :]
        for k in tl.static_range(TAPS):
            at = t - (TAPS - 1) + k
            x = tl.load(x_pointer + at[:, None] * C + channel[None, :],
                        mask=((at >= 0) & (at < T))[:, None] & (channel < C)[None, :], other=0.0)
            out += x.to(tl.float32) * tl.load(weight_pointer + channel * TAPS + k, mask=channel < C, other=0.0)[None, :]
        return out

    @triton.jit
    def conv_forward_kernel(x_pointer, weight_pointer, bias_pointer, out_pointer, T, C, TAPS: tl.constexpr,
                            BIASED: tl.constexpr, TIME: tl.constexpr, CHANNELS: tl.constexpr):
        sequence = tl.program_id(2).to(tl.int64) * T * C
        t = tl.program_id(0) * TIME + tl.arange(0, TIME)
        channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
        out = before_silu(x_pointer + sequence, weight_pointer, bias_pointer, t, channel, T, C, TAPS, BIASED, TIME, CHANNELS)
        tl.store(out_pointer + sequence + t[:, None] * C + channel[None, :],
                 (out * tl.sigmoid(out)).to(out_pointer.dtype.element_ty), mask=(t < T)[:, None] & (channel < C)[None, :])

    @triton.jit
    def before_silu_kernel(gradient_pointer, x_pointer, weight_pointer, bias_pointer, before_pointer, parts_pointer, T, C,
                           TAPS: tl.constexpr, BIASED: tl.constexpr, TIME: tl.constexpr, CHANNELS: tl.constexpr):
        """Gradient of the sums before SiLU, and this block's part of the gradients of weight and bias."""
        sequence = tl.program_id(2).to(tl.int64) * T * C
        t = tl.program_id(0) * TIME + tl.arange(0, TIME)
        channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
        inside = (t < T)[:, None] & (channel < C)[None, :]
        here = sequence + t[:, None] * C + channel[None, :]
        out = before_silu(x_pointer + sequence, weight_pointer, bias_pointer, t, channel, T, C, TAPS, BIASED, TIME, CHANNELS)
        gate = tl.sigmoid(out)
        gradient = tl.load(gradient_pointer + here, mask=inside, other=0.0).to(tl.float32)
        gradient = gradient * gate * (1.0 + out * (1.0 - gate))
        tl.store(before_pointer + here, gradient.to(before_pointer.dtype.element_ty), mask=inside)
        part = (tl.program_id(2) * tl.num_programs(0) + tl.program_id(0)) * (TAPS + 1) * C + channel
        for k in tl.static_range(TAPS):
            at = t - (TAPS - 1) + k
            x = tl.load(x_pointer + sequence + at[:, None] * C + channel[None, :],
                        mask=((at >= 0) & (at < T))[:, None] & (channel < C)[None, :], other=0.0)
            tl.store(parts_pointer + part + k * C, tl.sum(gradient * x.to(tl.float32), axis=0), mask=channel < C)
        tl.store(parts_pointer + part + TAPS * C, tl.sum(gradient, axis=0), mask=channel < C)

    @triton.jit
    def of_x_kernel(before_pointer, weight_pointer, of_x_pointer, T, C, TAPS: tl.constexpr, TIME: tl.constexpr,
                    CHANNELS: tl.constexpr):
        """x_t enters the sums of the times t ... t + TAPS - 1."""
        sequence = tl.program_id(2).to(tl.int64) * T * C
        t = tl.program_id(0) * TIME + tl.arange(0, TIME)
        channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
        of_x = tl.zeros((TIME, CHANNELS), dtype=tl.float32)
        for later in tl.static_range(TAPS):
            at = t + later
            before = tl.load(before_pointer + sequence + at[:, None] * C + channel[None, :],
                             mask=(at < T)[:, None] & (channel < C)[None, :], other=0.0)
            weight = tl.load(weight_pointer + channel * TAPS + TAPS - 1 - later, mask=channel < C, other=0.0)
            of_x += before.to(tl.float32) * weight[None, :]
        tl.store(of_x_pointer + sequence + t[:, None] * C + channel[None, :], of_x.to(of_x_pointer.dtype.element_ty),
                 mask=(t < T)[:, None] & (channel < C)[None, :])
