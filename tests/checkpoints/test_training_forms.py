#!/usr/bin/env python3
"""checkpoints/training: the models in their training form against implementations that train nothing.

Models: transformers on the same weights, logits and gradients. The delta rule in chunks: the recurrence, token by token
in float64. Triton kernels: plain PyTorch; on a machine without a GPU they run in Triton's interpreter, in float32 because
its bfloat16 products are not right.
"""

import json
import os
import sys
import tempfile
import unittest
import unittest.mock

import torch

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "checkpoints", "training"))
ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
INTERPRETER = unittest.mock.patch.dict(os.environ, {} if ON_GPU else {"TRITON_INTERPRET": "1"})
with INTERPRETER:  # read where kernels are declared, and again where they run
    import causal_conv  # noqa: E402
    import gated_delta  # noqa: E402
    import gated_delta_kernels  # noqa: E402
from model import Hybrid, read_config  # noqa: E402
from optimizer import Optimizer  # noqa: E402
from shards import load_shards, save_shards  # noqa: E402

TINY = {
    "architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next", "vocab_size": 61, "hidden_size": 24,
    "intermediate_size": 40, "num_hidden_layers": 3,
    "layer_types": ["linear_attention", "full_attention", "linear_attention"], "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "partial_rotary_factor": 0.5, "rope_theta": 500.0,
    "linear_conv_kernel_dim": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 24, "linear_num_key_heads": 2,
    "linear_num_value_heads": 6, "hidden_act": "silu", "rms_norm_eps": 1e-6, "num_experts": 0, "num_experts_per_tok": 0,
    "mlp_only_layers": [], "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": None,
}


def distance(x, y):
    return ((x.double() - y.double()).norm() / y.double().norm()).item()


def recurrence(q, k, v, g, beta):
    """One token after another, as design.md writes it."""
    each = v.shape[2] // k.shape[2]
    q, k = (x.repeat_interleave(each, dim=2) for x in (q, k))
    state = torch.zeros(v.shape[0], v.shape[2], v.shape[3], k.shape[3], dtype=v.dtype)  # [B,H,V,K]
    out = []
    for t in range(v.shape[1]):
        state = state * g[:, t, :, None, None].exp()
        d = beta[:, t, :, None] * (v[:, t] - (state @ k[:, t, :, :, None]).squeeze(-1))
        state = state + d[..., None] * k[:, t, :, None, :]
        out.append((state @ q[:, t, :, :, None]).squeeze(-1))
    return torch.stack(out, 1)


def delta_inputs(key_dim, value_dim, alike, decay):
    """q, k, v, g, beta of two sequences of 128; `alike` in 0 ... 1 draws the keys together, the hard case of the solve."""
    generator = torch.Generator().manual_seed(5)
    draw = lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)  # noqa: E731
    q, k, v = draw(2, 128, 2, key_dim), draw(2, 128, 2, key_dim), draw(2, 128, 4, value_dim)
    k = (1 - alike) * k + alike * draw(1, 1, 2, key_dim)
    q, k = (x / x.norm(dim=-1, keepdim=True) for x in (q, k))
    return [q * key_dim ** -0.5, k, v, -decay * torch.rand(2, 128, 4, generator=generator, dtype=torch.float64),
            torch.rand(2, 128, 4, generator=generator, dtype=torch.float64)]


class DeltaRule(unittest.TestCase):
    def compare(self, limit, **settings):
        inputs = delta_inputs(**settings)
        exact = [x.clone().requires_grad_() for x in inputs]
        chunked = [x.float().requires_grad_() for x in inputs]
        expected, found = recurrence(*exact), gated_delta.gated_delta_rule(*chunked, 64)
        self.assertLess(distance(found, expected), limit)
        gradient = torch.randn(expected.shape, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
        expected.backward(gradient)
        found.backward(gradient.float())
        for mine, theirs in zip(chunked, exact):
            self.assertLess(distance(mine.grad, theirs.grad), limit)

    def test_is_the_recurrence(self):
        self.compare(2e-6, key_dim=32, value_dim=48, alike=0.0, decay=0.1)

    def test_keys_that_are_nearly_one_key(self):
        self.compare(2e-5, key_dim=16, value_dim=16, alike=0.9, decay=0.01)

    def test_decay_that_forgets_within_a_chunk(self):
        # The running sum of decays reaches 640 within a chunk, where float32 numbers are 6e-5 apart.
        self.compare(6e-5, key_dim=16, value_dim=32, alike=0.0, decay=20.0)


class Models(unittest.TestCase):
    def published(self, folder):
        from transformers import AutoModelForCausalLM
        return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def range_share(self, mine, theirs):
        return ((mine - theirs).abs().max() / (theirs.max() - theirs.min())).item()

    def test_qwen3_next_is_transformers_with_gradients(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as stream:
                json.dump(TINY, stream)
            torch.manual_seed(3)
            model = Hybrid(read_config(os.path.join(folder, "config.json")))
            with torch.no_grad():
                for parameter in model.parameters():  # away from the special values that training begins with
                    parameter.add_(torch.randn_like(parameter) * 0.1)
            save_shards(model, folder, torch.float32, shard_bytes=10000)
            published = self.published(folder)
        ids = torch.randint(3, TINY["vocab_size"], (2, 129))
        self.assertLess(self.range_share(model.logits(ids[:, :77]), published(ids[:, :77], use_cache=False).logits), 2e-6)
        model.losses(ids[:, :-1], ids[:, 1:]).mean().backward()
        logits = published(ids[:, :-1], use_cache=False).logits
        torch.nn.functional.cross_entropy(logits.transpose(1, 2), ids[:, 1:]).backward()
        theirs = dict(published.named_parameters())
        self.assertEqual(set(theirs), {name for name, _ in model.named_parameters()})
        for name, parameter in model.named_parameters():
            self.assertLess(distance(parameter.grad, theirs[name].grad), 2e-5, name)

    def test_nemotron_h_is_transformers(self):
        folder = os.path.join(ROOT, "checkpoints", "tiny-nemotron-h")
        model = load_shards(Hybrid(read_config(os.path.join(folder, "config.json"))), folder)
        ids = torch.randint(3, 4096, (1, 150), generator=torch.Generator().manual_seed(7))
        with torch.no_grad():
            self.assertLess(self.range_share(model.logits(ids), self.published(folder)(ids, use_cache=False).logits), 2e-6)

    def test_another_model_type_is_refused(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as stream:
            json.dump({"model_type": "llama"}, stream)
            stream.flush()
            with self.assertRaisesRegex(SystemExit, "model_type 'llama', expected one of .*qwen3_next"):
                read_config(stream.name)

    def test_training_goes_on_from_a_saved_optimizer(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as stream:
            json.dump(TINY, stream)
            stream.flush()
            config = read_config(stream.name)
        ids = torch.randint(3, 61, (2, 65), generator=torch.Generator().manual_seed(8))

        def step(model, optimizer):
            model.losses(ids[:, :-1], ids[:, 1:]).mean().backward()
            optimizer.step(1.0)

        first = Hybrid(config)
        optimizer = Optimizer(first)
        step(first, optimizer)
        weights = {name: value.clone() for name, value in first.state_dict().items()}
        with tempfile.NamedTemporaryFile() as file:
            torch.save(optimizer.state(), file.name)
            second = Hybrid(config)
            second.load_state_dict(weights)
            other = Optimizer(second)
            other.load_state(torch.load(file.name))
        step(first, optimizer)
        step(second, other)
        for name, value in first.state_dict().items():
            self.assertTrue(torch.equal(value, second.state_dict()[name]), name)


class Kernels(unittest.TestCase):
    """On a GPU in bfloat16, the type they are for, where each result is rounded once; else float32."""

    def setUp(self):
        torch.manual_seed(11)
        INTERPRETER.start()
        self.addCleanup(INTERPRETER.stop)
        if gated_delta_kernels.triton is None:
            self.skipTest("no Triton")
        self.dtype, self.limit = (torch.bfloat16, 4e-3) if ON_GPU else (torch.float32, 1e-6)

    def draw(self, *shape, scale=1.0):
        return (torch.randn(*shape, device=DEVICE) * scale).to(self.dtype)

    def test_inverse(self):
        a = ((torch.rand(5, 64, 64, device=DEVICE) - 0.2) * 0.4).tril(-1)
        eye = torch.eye(64, dtype=torch.float64, device=DEVICE)
        self.assertLess(distance(gated_delta_kernels.invert_unit_lower(a), torch.linalg.inv(a.double() + eye)), 1e-6)

    def test_scan_and_its_gradients(self):
        batch, n, heads = (3, 5, 4) if ON_GPU else (1, 3, 2)
        w, to_end = (self.draw(batch, n, heads, 64, 128, scale=0.06) for _ in range(2))
        u, decay = self.draw(batch, n, heads, 64, 64), torch.rand(batch, n, heads, device=DEVICE)
        state, d = gated_delta_kernels.scan_forward(w, u, to_end, decay)
        expected_state, expected_d = gated_delta.delta_scan(w.float(), u.float(), to_end.float(), decay)
        self.assertLess(distance(state, expected_state), self.limit)
        self.assertLess(distance(d, expected_d), self.limit)
        of_state, of_d = self.draw(*state.shape), self.draw(*d.shape)
        found = gated_delta_kernels.scan_backward(w, to_end, decay, state, of_state, of_d)
        expected = gated_delta.delta_scan_backward(w.float(), to_end.float(), decay, state.float(), of_state.float(),
                                                   of_d.float())
        for mine, theirs in zip(found, expected):
            self.assertLess(distance(mine, theirs), self.limit)

    def test_convolution_and_its_gradients(self):
        for biased in (False, True):
            x, weight = self.draw(2, 150, 96), torch.randn(96, 4, device=DEVICE)
            bias = torch.randn(96, device=DEVICE) if biased else None
            gradient = self.draw(2, 150, 96)
            exact = [x.double().requires_grad_(), weight.double().requires_grad_()]
            padded = torch.nn.functional.pad(exact[0].transpose(1, 2), (3, 0))
            out = torch.nn.functional.conv1d(padded, exact[1][:, None], None if bias is None else bias.double(), groups=96)
            out = torch.nn.functional.silu(out).transpose(1, 2)
            out.backward(gradient.double())
            self.assertLess(distance(causal_conv.conv_forward(x, weight, bias), out), self.limit)
            self.assertLess(distance(causal_conv.conv_by_shifts(x, weight, bias), out), self.limit)
            of_x, of_weight, _ = causal_conv.conv_backward(gradient, x, weight, bias)
            self.assertLess(distance(of_x, exact[0].grad), self.limit)
            self.assertLess(distance(of_weight, exact[1].grad), self.limit)

    @unittest.skipUnless(ON_GPU, "bfloat16 needs the GPU's kernels")
    def test_delta_rule_in_bfloat16(self):
        inputs = delta_inputs(key_dim=128, value_dim=128, alike=0.2, decay=0.05)
        exact = [x.clone().requires_grad_() for x in inputs]
        rounded = [x.to(DEVICE, torch.bfloat16 if i < 3 else torch.float32).requires_grad_() for i, x in enumerate(inputs)]
        expected, found = recurrence(*exact), gated_delta.gated_delta_rule(*rounded, 64)
        self.assertLess(distance(found.cpu(), expected), 0.01)
        gradient = torch.randn(expected.shape, dtype=torch.float64)
        expected.backward(gradient)
        found.backward(gradient.float().to(DEVICE))
        for mine, theirs in zip(rounded, exact):
            self.assertLess(distance(mine.grad.cpu(), theirs.grad), 0.012)


if __name__ == "__main__":
    unittest.main()
