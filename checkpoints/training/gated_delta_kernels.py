"""Triton kernels of gated_delta.py: what a batched product cannot do, because it goes row by row or chunk by chunk.

All tensors are contiguous; C, K and V are powers of two, at least 16. Checked against the plain PyTorch of gated_delta.py
in Triton's interpreter too (TRITON_INTERPRET=1), which needs no GPU.
"""

import torch

try:
    import triton
    import triton.language as tl
except ImportError:  # builds of PyTorch without CUDA have none; nothing here is called there
    triton = None

SCAN_COLUMNS = 32  # columns of V that one program carries: K x 32 float32 in registers


def invert_unit_lower(a):
    if a.shape[-1] != 64:
        raise ValueError(f"chunks of 64 tokens expected on a GPU, not {a.shape[-1]}")
    out = torch.empty_like(a)
    invert_kernel[(a.numel() // 4096,)](a, out, num_warps=1)
    return out


def scan_forward(w, u, to_end, decay):
    batch, n, heads, chunk, key_dim = w.shape
    value_dim = u.shape[-1]
    states, d = u.new_empty(batch, n, heads, key_dim, value_dim), torch.empty_like(u)
    columns = min(SCAN_COLUMNS, value_dim)
    scan_forward_kernel[(value_dim // columns, batch * heads)](
        w, u, to_end, decay, states, d, heads, n, chunk, key_dim, value_dim, columns, num_warps=4, num_stages=2)
    return states, d


def scan_backward(w, to_end, decay, states, grad_states, grad_d):
    batch, n, heads, chunk, key_dim = w.shape
    value_dim = grad_d.shape[-1]
    columns = min(SCAN_COLUMNS, value_dim)
    after, grad_u = torch.empty_like(states), torch.empty_like(grad_d)
    parts = decay.new_empty(value_dim // columns, *decay.shape)
    scan_backward_kernel[(value_dim // columns, batch * heads)](
        w, to_end, decay, states, grad_states, grad_d, after, grad_u, parts, heads, decay.numel(), n,
        chunk, key_dim, value_dim, columns, num_warps=4, num_stages=2)
    return after, grad_u, parts.sum(0)


if triton is not None:
    @triton.jit
    def invert_diagonal(a_pointer, index):
        """(I + a)^-1 of one 16 x 16 block: row i is e_i - sum over j < i of a_ij times row j."""
        out = tl.where(index[:, None] == index[None, :], 1.0, 0.0)
        for i in range(1, 16):
            row = tl.load(a_pointer + i * 64 + index, mask=index < i, other=0.0)
            new = tl.sum(row[:, None] * out, axis=0)
            out = tl.where(index[:, None] == i, out - new[None, :], out)
        return out

    @triton.jit
    def product(x, y):
        return tl.dot(x, y, input_precision="ieee")

    @triton.jit
    def invert_kernel(a_pointer, out_pointer):
        """One 64 x 64 matrix a program, in blocks of 16: T_ij = -T_ii (sum over j <= k < i of a_ik T_kj)."""
        a_pointer += tl.program_id(0).to(tl.int64) * 4096
        out_pointer += tl.program_id(0).to(tl.int64) * 4096
        index = tl.arange(0, 16)
        block = index[:, None] * 64 + index[None, :]
        t0 = invert_diagonal(a_pointer, index)
        t1 = invert_diagonal(a_pointer + 16 * 65, index)
        t2 = invert_diagonal(a_pointer + 32 * 65, index)
        t3 = invert_diagonal(a_pointer + 48 * 65, index)
        a10 = tl.load(a_pointer + 16 * 64 + block)
        a20 = tl.load(a_pointer + 32 * 64 + block)
        a21 = tl.load(a_pointer + 32 * 64 + 16 + block)
        a30 = tl.load(a_pointer + 48 * 64 + block)
        a31 = tl.load(a_pointer + 48 * 64 + 16 + block)
        a32 = tl.load(a_pointer + 48 * 64 + 32 + block)
        t10 = -product(t1, product(a10, t0))
        t21 = -product(t2, product(a21, t1))
        t32 = -product(t3, product(a32, t2))
        t20 = -product(t2, product(a20, t0) + product(a21, t10))
        t31 = -product(t3, product(a31, t1) + product(a32, t21))
        t30 = -product(t3, product(a30, t0) + product(a31, t10) + product(a32, t20))
        zero = tl.zeros((16, 16), dtype=tl.float32)
        tl.store(out_pointer + block, t0)
        tl.store(out_pointer + 16 + block, zero)
        tl.store(out_pointer + 32 + block, zero)
        tl.store(out_pointer + 48 + block, zero)
        tl.store(out_pointer + 16 * 64 + block, t10)
        tl.store(out_pointer + 16 * 65 + block, t1)
        tl.store(out_pointer + 16 * 65 + 16 + block, zero)
        tl.store(out_pointer + 16 * 65 + 32 + block, zero)
        tl.store(out_pointer + 32 * 64 + block, t20)
        tl.store(out_pointer + 32 * 64 + 16 + block, t21)
        tl.store(out_pointer + 32 * 65 + block, t2)
        tl.store(out_pointer + 32 * 65 + 16 + block, zero)
        tl.store(out_pointer + 48 * 64 + block, t30)
        tl.store(out_pointer + 48 * 64 + 16 + block, t31)
        tl.store(out_pointer + 48 * 64 + 32 + block, t32)
        tl.store(out_pointer + 48 * 65 + block, t3)

    @triton.jit
    def scan_forward_kernel(w_pointer, u_pointer, to_end_pointer, decay_pointer, states_pointer, d_pointer, heads, n: tl.constexpr,
                            C: tl.constexpr, K: tl.constexpr, V: tl.constexpr, COLUMNS: tl.constexpr):
        batch, head = tl.program_id(1) // heads, tl.program_id(1) % heads
        row, key = tl.arange(0, C), tl.arange(0, K)
        column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
        row_key = row[:, None] * K + key[None, :]
        row_column = row[:, None] * V + column[None, :]
        key_column = key[:, None] * V + column[None, :]
        s = tl.zeros((K, COLUMNS), dtype=tl.float32)
        for c in range(n):
            at = ((batch * n + c) * heads + head).to(tl.int64)
            stored = s.to(w_pointer.dtype.element_ty)
            tl.store(states_pointer + at * K * V + key_column, stored)
            w = tl.load(w_pointer + at * C * K + row_key)
            u = tl.load(u_pointer + at * C * V + row_column)
            to_end = tl.load(to_end_pointer + at * C * K + row_key)
            d = (u.to(tl.float32) - tl.dot(w, stored)).to(w_pointer.dtype.element_ty)
            tl.store(d_pointer + at * C * V + row_column, d)
            s = s * tl.load(decay_pointer + at) + tl.dot(tl.trans(to_end), d)

    @triton.jit
    def scan_backward_kernel(w_pointer, to_end_pointer, decay_pointer, states_pointer, grad_states_pointer, grad_d_pointer,
                             after_pointer, grad_u_pointer, grad_decay_pointer, heads, decays, n: tl.constexpr,
                             C: tl.constexpr, K: tl.constexpr, V: tl.constexpr, COLUMNS: tl.constexpr):
        batch, head = tl.program_id(1) // heads, tl.program_id(1) % heads
        row, key = tl.arange(0, C), tl.arange(0, K)
        column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
        row_key = row[:, None] * K + key[None, :]
        row_column = row[:, None] * V + column[None, :]
        key_column = key[:, None] * V + column[None, :]
        e = tl.zeros((K, COLUMNS), dtype=tl.float32)
        for back in range(n):
            at = ((batch * n + n - 1 - back) * heads + head).to(tl.int64)
            stored = e.to(w_pointer.dtype.element_ty)
            tl.store(after_pointer + at * K * V + key_column, stored)
            states = tl.load(states_pointer + at * K * V + key_column)
            tl.store(grad_decay_pointer + tl.program_id(0) * decays + at, tl.sum(states.to(tl.float32) * e))
            to_end = tl.load(to_end_pointer + at * C * K + row_key)
            w = tl.load(w_pointer + at * C * K + row_key)
            grad_d = tl.load(grad_d_pointer + at * C * V + row_column).to(tl.float32)
            grad_u = (grad_d + tl.dot(to_end, stored)).to(w_pointer.dtype.element_ty)
            tl.store(grad_u_pointer + at * C * V + row_column, grad_u)
            e = (e * tl.load(decay_pointer + at) + tl.load(grad_states_pointer + at * K * V + key_column).to(tl.float32)
                 - tl.dot(tl.trans(w), grad_u))
