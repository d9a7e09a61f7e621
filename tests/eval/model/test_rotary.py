"""Rotary frequencies of every kind, in both spellings, against transformers' own functions.

    REPLAYEVAL=build/cpu/bin/replayeval python3 -m unittest tests/eval/model/test_rotary.py
"""

import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import parity  # noqa: E402

TABLE = pathlib.Path(parity.PROGRAM).parent / "rotary_table"
PER_KIND = 12


def random_parameters(kind, pairs, rng):
    """The keys of one rope_parameters, and whether a length before the extension stands beside them."""
    parameters = dict(rope_type=kind, rope_theta=rng.choice([500.0, 1e4, 1e6, 1e11]))
    if kind in ("linear", "dynamic", "llama3", "yarn"):
        parameters["factor"] = rng.choice([1.0, 2.5, 8.0])
    if kind in ("llama3", "yarn", "longrope"):
        parameters["original_max_position_embeddings"] = rng.choice([16, 100, 512])
    if kind == "llama3":
        parameters.update(low_freq_factor=rng.choice([1.0, 1.5]), high_freq_factor=rng.choice([2.0, 4.0]))
    if kind == "yarn":
        optional = dict(beta_fast=rng.choice([8.0, 32.0]), beta_slow=rng.choice([1.0, 2.0]), truncate=rng.random() < 0.5,
                        mscale=rng.choice([0.7, 1.0]), mscale_all_dim=rng.choice([0.5, 1.0]), attention_factor=1.3)
        parameters.update({key: value for key, value in optional.items() if rng.random() < 0.5})
    if kind == "longrope":
        parameters["short_factor"] = [rng.uniform(1.0, 2.0) for _ in range(pairs)]
        parameters["long_factor"] = [rng.uniform(1.0, 30.0) for _ in range(pairs)]
        optional = dict(factor=rng.choice([4.0, 32.0]), attention_factor=rng.choice([1.0, 1.2]))
        parameters.update({key: value for key, value in optional.items() if rng.random() < 0.4})
    return parameters


def expected(config, kind, length):
    """(inverse frequencies, attention factor) of a sequence of `length`."""
    if kind == "default":
        theta, share = config.rope_parameters["rope_theta"], config.rope_parameters.get("partial_rotary_factor", 1.0)
        dim = int(config.head_dim * share)
        return 1.0 / (theta ** (torch.arange(0, dim, 2, dtype=torch.float) / dim)), 1.0
    # As the model's update does: a tensor of a length beyond the threshold for dynamic.
    seq_len = torch.tensor(length) if kind == "dynamic" and length > config.max_position_embeddings else length
    return ROPE_INIT_FUNCTIONS[kind](config, None, seq_len=seq_len)


def old_spelling(parameters, share):
    """rope_scaling with a `type`, and the rest beside it."""
    inner = {key: value for key, value in parameters.items() if key not in ("rope_type", "rope_theta")}
    kind = parameters["rope_type"]
    config = dict(rope_theta=parameters["rope_theta"], rope_scaling=None if kind == "default" else {"type": kind, **inner})
    return config if share == 1.0 else dict(config, partial_rotary_factor=share)


class Rotary(unittest.TestCase):
    def tables(self, configs):
        with tempfile.TemporaryDirectory() as scratch:
            folders = []
            for i, config in enumerate(configs):
                folder = pathlib.Path(scratch) / str(i)
                folder.mkdir()
                (folder / "config.json").write_text(json.dumps(config))
                save_file({"x": torch.zeros(1)}, folder / "model.safetensors")
                folders.append(str(folder))
            done = subprocess.run([str(TABLE), *folders], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            return [json.loads(line) for line in done.stdout.splitlines()]

    def check_kind(self, kind):
        rng = random.Random(kind)
        configs, wanted = [], []
        for _ in range(PER_KIND):
            head_dim, share = rng.choice([(16, 1.0), (20, 1.0), (64, 0.5), (24, 0.75)])
            maximum = rng.choice([100, 1024])
            parameters = random_parameters(kind, int(head_dim * share) // 2, rng)
            if kind in ("yarn", "longrope", "llama3"):
                maximum = parameters["original_max_position_embeddings"] * rng.choice([1, 4])
            lengths = [1, maximum // 2, maximum, maximum + 1, 3 * maximum]
            if kind == "longrope":
                original = parameters["original_max_position_embeddings"]
                lengths = [1, original, original + 1, 4 * original]
            new = dict(rope_parameters=dict(parameters, **({} if share == 1.0 else {"partial_rotary_factor": share})))
            reference = LlamaConfig(head_dim=head_dim, max_position_embeddings=maximum,
                                    **json.loads(json.dumps(new)))
            for spelling in (new, old_spelling(parameters, share)):
                configs.append(dict(model_type="any", head_dim=head_dim, max_position_embeddings=maximum, lengths=lengths,
                                    **spelling))
                wanted.append({length: expected(reference, kind, length) for length in lengths})
        for config, table, lengths in zip(configs, self.tables(configs), wanted):
            for length, (frequencies, factor) in lengths.items():
                ours = np.array(table["frequencies"][str(length)], dtype=np.float32)
                np.testing.assert_allclose(ours, frequencies.numpy(), rtol=3e-6, err_msg=f"{config}, length {length}")
                self.assertAlmostEqual(table["attention_factor"], float(factor), places=12, msg=str(config))

    def test_default(self):
        self.check_kind("default")

    def test_linear(self):
        self.check_kind("linear")

    def test_dynamic(self):
        self.check_kind("dynamic")

    def test_yarn(self):
        self.check_kind("yarn")

    def test_longrope(self):
        self.check_kind("longrope")

    def test_llama3(self):
        self.check_kind("llama3")


if __name__ == "__main__":
    unittest.main()
