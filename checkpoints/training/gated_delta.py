"""The gated delta rule in chunks: all tokens of a chunk at once, one state carried from chunk to chunk.

    S_t = e^{g_t} S_{t-1} + k_t d_t^T,   d_t = beta_t (v_t - e^{g_t} S_{t-1}^T k_t),   o_t = S_t^T q_t        S: [K, V]

(the transpose of the state as design and reference write it). Within a chunk, with G the running sum of g, the d's solve
(I + A) d = beta v - (beta e^G k) S_0, A_ij = beta_i (k_i . k_j) e^{G_i - G_j} for j < i: the WY form of Yang et al.,
"Gated Delta Networks" (2024), section 3. So (I + A)^-1 is applied once to both right sides, for all chunks together, and
what remains in sequence is one small product a chunk (`delta_scan`).

The inverse is float32 always. Products are in the type of q, k, v and sum in float32.
"""

import torch

import gated_delta_kernels


def gated_delta_rule(q, k, v, g, beta, chunk):
    """o [B,T,H,V] float32 from q, k [B,T,G,K] (normalised and scaled), v [B,T,H,V], g and beta [B,T,H] float32.

    T is a multiple of `chunk`; H is a multiple of G, value head h reads key head h / (H / G).
    """
    batch, length, key_heads, key_dim = k.shape
    heads, value_dim = v.shape[2:]
    n, each, dtype = length // chunk, heads // key_heads, v.dtype

    def by_chunk(x):  # [B,T,heads,...] -> [B,n,heads,chunk,...]
        return x.view(batch, n, chunk, *x.shape[2:]).transpose(2, 3)

    total = by_chunk(g).contiguous().cumsum(-1)                                   # [B,n,H,C]
    beta = by_chunk(beta)[..., None]                                              # [B,n,H,C,1]
    q, k, v = by_chunk(q).contiguous(), by_chunk(k).contiguous(), by_chunk(v)     # [B,n,G|H,C,K|V]

    def to_value_heads(x):  # [B,n,G,...] -> [B,n,H,...]
        return x[:, :, :, None].expand(*x.shape[:3], each, *x.shape[3:]).reshape(batch, n, heads, *x.shape[3:])

    causal = torch.ones(chunk, chunk, dtype=torch.bool, device=q.device).tril()
    decay = torch.where(causal, total[..., :, None] - total[..., None, :], float("-inf")).exp()
    a = to_value_heads((k @ k.transpose(-1, -2)).float()) * decay * beta
    inverse = invert_unit_lower(torch.where(causal.tril(-1), a, 0.0)).to(dtype)
    scores = (to_value_heads((q @ k.transpose(-1, -2)).float()) * decay).to(dtype)

    carried = total.exp()[..., None]
    wide_k = to_value_heads(k).float()
    u = inverse @ (v.float() * beta).to(dtype)
    w = inverse @ (wide_k * (beta * carried)).to(dtype)
    to_end = (wide_k * (total[..., -1:] - total).exp()[..., None]).to(dtype)
    state, d = delta_scan(w, u, to_end, total[..., -1].exp())
    y = ((to_value_heads(q).float() * carried).to(dtype) @ state).float() + (scores @ d).float()
    return y.transpose(2, 3).reshape(batch, length, heads, value_dim)


# ---------------------------------------------------------------------------------------------------------------------
# (I + A)^-1
# ---------------------------------------------------------------------------------------------------------------------

@torch.library.custom_op("replayeval::invert_unit_lower", mutates_args=())
def invert_unit_lower(a: torch.Tensor) -> torch.Tensor:
    """(I + a)^-1 for strictly lower triangular a [..., C, C] float32."""
    if a.is_cuda:
        return gated_delta_kernels.invert_unit_lower(a.contiguous())
    eye = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    return torch.linalg.solve_triangular(a, eye.expand_as(a).contiguous(), upper=False, unitriangular=True).contiguous()


@invert_unit_lower.register_fake
def _(a):
    return torch.empty(a.shape, dtype=a.dtype, device=a.device)


def invert_backward(ctx, gradient):
    inverse, = ctx.saved_tensors
    transposed = inverse.transpose(-1, -2)
    return -(transposed @ gradient @ transposed).tril(-1)


def save_inverse(ctx, inputs, output):
    ctx.save_for_backward(output)


invert_unit_lower.register_autograd(invert_backward, setup_context=save_inverse)


# ---------------------------------------------------------------------------------------------------------------------
# From chunk to chunk
# ---------------------------------------------------------------------------------------------------------------------

@torch.library.custom_op("replayeval::delta_scan", mutates_args=())
def delta_scan(w: torch.Tensor, u: torch.Tensor, to_end: torch.Tensor,
               decay: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """For chunk after chunk, from S = 0:  d = u - w S;  S = decay S + to_end^T d.

    w, to_end [B,n,H,C,K], u [B,n,H,C,V] of one type, decay [B,n,H] float32. Returns the state before each chunk
    [B,n,H,K,V] and d [B,n,H,C,V], stored in that type; S itself is carried in float32.
    """
    if w.dtype == torch.bfloat16 and w.is_cuda:
        return gated_delta_kernels.scan_forward(*(x.contiguous() for x in (w, u, to_end, decay)))
    batch, n, heads, chunk, key_dim = w.shape
    s = torch.zeros(batch, heads, key_dim, u.shape[-1], device=w.device)
    states, d = u.new_empty(batch, n, heads, key_dim, u.shape[-1]), u.new_empty(u.shape)
    for c in range(n):
        states[:, c] = s
        d[:, c] = u[:, c].float() - w[:, c].float() @ states[:, c].float()
        s = decay[:, c, :, None, None] * s + to_end[:, c].float().transpose(-1, -2) @ d[:, c].float()
    return states, d


@delta_scan.register_fake
def _(w, u, to_end, decay):
    batch, n, heads, _, key_dim = w.shape
    return u.new_empty(batch, n, heads, key_dim, u.shape[-1]), u.new_empty(u.shape)


@torch.library.custom_op("replayeval::delta_scan_backward", mutates_args=())
def delta_scan_backward(w: torch.Tensor, to_end: torch.Tensor, decay: torch.Tensor, states: torch.Tensor,
                        grad_states: torch.Tensor, grad_d: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients of delta_scan, chunk by chunk from the last, E being the gradient of the state after a chunk:

        grad_u = grad_d + to_end E;   grad_decay = sum(S E);   E = decay E + grad_states - w^T grad_u

    Returns E of every chunk [B,n,H,K,V], grad_u (both in w's type) and grad_decay [B,n,H] float32.
    """
    if w.dtype == torch.bfloat16 and w.is_cuda:
        return gated_delta_kernels.scan_backward(*(x.contiguous() for x in (w, to_end, decay, states, grad_states, grad_d)))
    e = torch.zeros(states[:, 0].shape, device=w.device)
    after, grad_u, grad_decay = (x.new_empty(x.shape) for x in (states, grad_d, decay))
    for c in reversed(range(w.shape[1])):
        after[:, c] = e
        grad_decay[:, c] = (states[:, c].float() * e).sum((-1, -2))
        grad_u[:, c] = grad_d[:, c].float() + to_end[:, c].float() @ after[:, c].float()
        e = (decay[:, c, :, None, None] * e + grad_states[:, c].float()
             - w[:, c].float().transpose(-1, -2) @ grad_u[:, c].float())
    return after, grad_u, grad_decay


@delta_scan_backward.register_fake
def _(w, to_end, decay, states, grad_states, grad_d):
    return states.new_empty(states.shape), grad_d.new_empty(grad_d.shape), decay.new_empty(decay.shape)


def scan_backward(ctx, grad_states, grad_d):
    w, to_end, decay, states, d = ctx.saved_tensors
    after, grad_u, grad_decay = delta_scan_backward(w, to_end, decay, states, grad_states, grad_d)
    return -(grad_u @ states.transpose(-1, -2)), grad_u, d @ after.transpose(-1, -2), grad_decay


def save_scan(ctx, inputs, output):
    w, _, to_end, decay = inputs
    ctx.save_for_backward(w, to_end, decay, *output)


delta_scan.register_autograd(scan_backward, setup_context=save_scan)
