"""`replayeval inspect` of every model_type from its config.json alone: parameters as transformers counts them, bytes and
traffic by formulas that are written out once more here (of the types with Mamba-2 layers), the keys of the config.

    REPLAYEVAL=build/cpu/bin/replayeval python3 -m unittest tests/eval/model/test_inspect.py
"""

import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import torch
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import nemotron_h_cases as nemotron_h  # noqa: E402
import parity  # noqa: E402
import test_parity_bamba  # noqa: E402
import test_parity_falcon_h1  # noqa: E402
import test_parity_granitemoehybrid  # noqa: E402
import test_parity_kimi_linear  # noqa: E402
import test_parity_mamba2  # noqa: E402
import test_parity_olmo_hybrid  # noqa: E402
import test_parity_qwen3_5  # noqa: E402
import test_parity_qwen3_5_moe  # noqa: E402
import test_parity_qwen3_next  # noqa: E402
import test_parity_zamba2  # noqa: E402

CONTEXT, MEMORY = 300, 4 << 20
LENGTHS, BATCHES = (1, 2, 4, 8, 16, 32, 64), (1, 8, 32, 64, 128, 256)
SIZES = {"float32": 4, "bfloat16": 2, "float16": 2}
MIXER, ATTENTION, BOTH = "mamba2", "attention", "mamba2+attention"
LAYERS = {"M": MIXER, "*": ATTENTION, "-": "mlp", "E": "moe", "B": BOTH}


@dataclasses.dataclass
class Subject:
    config: transformers.PretrainedConfig
    layers: str                  # letters of LAYERS
    heads: int                   # of a mixer, and its other sizes
    head_dim: int
    state: int
    groups: int
    norm: tuple                  # channels under one mean: published, transformers
    conv: int = 4
    kv: tuple = (0, 0)           # heads and width of keys and values
    experts: dict = dataclasses.field(default_factory=dict)
    printed: tuple = ()          # lines of the page
    ignored: tuple = ()          # keys among those of no use


def subjects():
    def config_of(test, **settings):
        return test.config_class(**{**test.base, **settings})

    nano = nemotron_h.CASES["latent_experts"].settings
    latent = dict(experts=6, chosen=2, intermediate_size=44, shared_intermediate_size=52, latent_size=28)
    granite = dict(experts=6, chosen=3, intermediate_size=36, shared_intermediate_size=44, latent_size=0)
    return {
        "mamba2": Subject(
            config_of(test_parity_mamba2.Mamba2), "MMM", 6, 24, 16, 3, (48, 144),
            printed=("over 48 channels, each of 3 groups by itself; over all 144 with norm_span: transformers",),
            ignored=("chunk_size",)),
        "bamba": Subject(
            config_of(test_parity_bamba.Bamba), "M*MM", 6, 24, 16, 3, (48, 144), kv=(2, 12),
            printed=("over 48 channels, each of 3 groups by itself; over all 144 with norm_span: transformers",
                     "6 heads of 12, 2 for keys and values"), ignored=("mamba_chunk_size",)),
        "granitemoehybrid": Subject(
            config_of(test_parity_granitemoehybrid.GraniteMoeHybrid, num_hidden_layers=3, mamba_n_groups=1,
                      layer_types=["linear_attention", "full_attention", "linear_attention"]),
            "M*M", 6, 24, 16, 1, (144, 144), kv=(2, 12), experts=granite,
            printed=("over all 144 channels\n", "3 of 6 a token, MLP 36, shared MLP 44\n"), ignored=("mamba_chunk_size",)),
        "falcon_h1": Subject(
            config_of(test_parity_falcon_h1.FalconH1), "BB", 6, 16, 24, 3, (0, 0), kv=(2, 12), printed=("none: outputs are only gated",),
            ignored=("mamba_chunk_size",)),
        "zamba2": Subject(
            config_of(test_parity_zamba2.Zamba2, num_hidden_layers=3, layers_block_type=["linear_attention", "hybrid", "linear_attention"]),
            "MBM", 6, 24, 16, 3, (48, 48), kv=(6, 24), printed=("over 48 channels, each of 3 groups by itself\n",),
            ignored=("chunk_size",)),
        "nemotron_h": Subject(
            transformers.NemotronHConfig(**{**nemotron_h.BASE, **nano}), "ME*ME", 6, 24, 16, 3, (48, 48), kv=(2, 20),
            experts=latent, printed=("2 of 6 a token, MLP 44 on a latent width of 28, shared MLP 52\n",),
            ignored=("chunk_size", "expand")),
    }


def count_parameters(config):
    """All of them, and those of routed experts; transformers' own, without memory for them."""
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    kept = model.state_dict().keys()
    named = dict(model.named_parameters())
    named.update((name, buffer) for name, buffer in model.named_buffers() if name in kept)
    routed = [value.numel() for name, value in named.items() if ".experts." in name]
    return sum(value.numel() for value in named.values()), sum(routed)


class Inspect(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def inspect(self, config, *options):
        config.save_pretrained(self.folder)
        command = [parity.PROGRAM, "inspect", str(self.folder / "config.json"), "--context", str(CONTEXT), "--memory",
                   str(MEMORY), *options]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def for_each(self, check):
        for model_type, subject in subjects().items():
            with self.subTest(model_type):
                found = json.loads(self.inspect(subject.config, "--json"))
                self.assertEqual(found["model_type"], model_type)
                check(subject, found)

    def test_architecture(self):
        def check(subject, found):
            self.assertEqual(found["layers"], [LAYERS[letter] for letter in subject.layers])
            mixers = sum(letter in "MB" for letter in subject.layers)
            attention = sum(letter in "*B" for letter in subject.layers)
            self.assertEqual(found["mamba2"], {
                "layers": mixers, "num_heads": subject.heads, "num_groups": subject.groups, "head_dim": subject.head_dim,
                "state_size": subject.state, "conv_kernel": subject.conv,
                "norm_group_size": {"published": subject.norm[0], "transformers": subject.norm[1]}})
            self.assertEqual(found["attention"]["layers"], attention)
            self.assertEqual((found["attention"]["num_kv_heads"], found["attention"]["head_dim"]), subject.kv)
            self.assertEqual(found.get("experts", {}), subject.experts)

        self.for_each(check)

    def test_parameters_are_those_of_transformers(self):
        def check(subject, found):
            total, routed = count_parameters(subject.config)
            self.assertEqual(found["parameters"], total)
            self.assertEqual(routed > 0, bool(subject.experts))
            idle = routed - routed * subject.experts["chosen"] // subject.experts["experts"] if routed else 0
            self.assertEqual(found["active_parameters"], total - idle)
            self.assertEqual(found["weight_bytes"], 4 * total)

        self.for_each(check)

    def test_delta_rule_parameters_are_those_of_transformers(self):
        for test in (test_parity_kimi_linear.KimiLinear, test_parity_olmo_hybrid.OlmoHybrid,
                     test_parity_qwen3_5.Qwen3_5Text, test_parity_qwen3_5_moe.Qwen3_5MoeText,
                     test_parity_qwen3_next.Qwen3Next):
            config = test.config_class(**test.base)
            with self.subTest(config.model_type):
                found = json.loads(self.inspect(config, "--json"))
                total, routed = count_parameters(config)
                experts = found.get("experts", {"experts": 1, "chosen": 1})
                self.assertEqual((found["model_type"], found["parameters"]), (config.model_type, total))
                self.assertEqual(found["active_parameters"],
                                 total - routed + routed * experts["chosen"] // experts["experts"])
                self.assertEqual(routed > 0, "experts" in found)
                self.assertEqual(found["config_keys"]["unknown"], [])
                mixers = config.layer_types.count("linear_attention")
                self.assertEqual((found["delta_rule"]["layers"], found["attention"]["layers"]),
                                 (mixers, len(config.layer_types) - mixers))

    def test_bytes_of_a_sequence(self):
        def check(subject, found):
            mixers, attention = found["mamba2"]["layers"], found["attention"]["layers"]
            inner, group = subject.heads * subject.head_dim, subject.groups * subject.state
            memory = found["bytes_per_sequence"]
            for name, size in SIZES.items():
                self.assertEqual(memory["state"][name], mixers * inner * subject.state * size)
                self.assertEqual(memory["conv_state"][name], mixers * (inner + 2 * group) * (subject.conv - 1) * size)
                self.assertEqual(memory["kv_per_token"][name], attention * 2 * subject.kv[0] * subject.kv[1] * size)
                self.assertEqual(memory["kv"][name], CONTEXT * memory["kv_per_token"][name])
                self.assertEqual(memory["kv_page_tokens"], 64)
            for name in ("float32", "bfloat16"):
                entry = (inner + group) * SIZES[name] + 4 * subject.heads  # dt stays float32
                self.assertEqual(memory["ring"][name], {str(length): mixers * length * entry for length in LENGTHS})

        self.for_each(check)

    def test_traffic_for_each_length_and_batch(self):
        def check(subject, found):
            memory, experts = found["bytes_per_sequence"], subject.experts
            total, routed = count_parameters(subject.config)
            hidden, vocab = subject.config.hidden_size, subject.config.vocab_size
            tied = subject.config.tie_word_embeddings and found["model_type"] != "nemotron_h"
            dense = 4 * (total - routed - (0 if tied else vocab * hidden))
            inputs = found["mamba2"]["layers"] * 4 * (2 * subject.heads * subject.head_dim +
                                                      2 * subject.groups * subject.state + subject.heads)
            rows = {(row["buffer_len"], row["state"], row["ring"]): row for row in found["traffic"]["rows"]}
            self.assertEqual(len(rows), len(LENGTHS) * 3 * 2)
            for (length, state, ring), row in rows.items():
                bytes_ = memory["state"][state]
                exact = 2 * bytes_ + inputs
                replay = inputs
                for token in range(length):  # of a cycle
                    last = token == length - 1
                    entries = token + (0 if last else 1)  # read, and written but for the flush
                    replay += (bytes_ * (2 if last else 1) + entries * memory["ring"][ring]["1"]) / length
                self.assertAlmostEqual(row["ratio"], replay / exact, places=12)
                self.assertEqual(sorted(map(int, row["step_ratio"])), sorted(BATCHES))
                for batch in BATCHES:
                    touched = 1 - (1 - experts["chosen"] / experts["experts"])**batch if experts else 0
                    weights = dense + 4 * routed * touched + batch * 4 * hidden
                    kept = batch * memory["kv"]["float32"]
                    self.assertAlmostEqual(row["step_ratio"][str(batch)],
                                           (weights + kept + batch * replay) / (weights + kept + batch * exact), places=12)

        self.for_each(check)

    def test_sequences_that_fit(self):
        def check(subject, found):
            memory, fit = found["bytes_per_sequence"], found["fit"]
            room = max(0, MEMORY - found["weight_bytes"])
            for state in SIZES:
                one = memory["state"][state] + memory["conv_state"]["float32"] + memory["kv"]["float32"]
                self.assertEqual(fit["sequences"]["exact"][state], room // one)
                for ring, lengths in fit["sequences"]["replay"][state].items():
                    self.assertEqual(lengths, {str(length): room // (one + memory["ring"][ring][str(length)])
                                               for length in LENGTHS})
            self.assertGreater(fit["sequences"]["exact"]["float32"], 0)

        self.for_each(check)

    def test_every_key_is_read_ignored_or_unknown(self):
        def check(subject, found):
            config = json.loads((self.folder / "config.json").read_text())
            keys = found["config_keys"]
            self.assertEqual(sorted(keys["read"] + keys["ignored"]), sorted(config))
            self.assertEqual(keys["unknown"], [])
            self.assertIn("vocab_size", keys["read"])
            for key in subject.ignored:
                self.assertIn(key, keys["ignored"])

        self.for_each(check)

    def test_pages(self):
        """What people read has every part, and none of a part that the model has not."""
        for model_type, subject in subjects().items():
            with self.subTest(model_type):
                page = self.inspect(subject.config)
                lines = [line.split()[0] for line in page.splitlines() if line.strip()]
                for word, there in (("mamba2", True), ("gated", True), ("attention", subject.kv != (0, 0)),
                                    ("experts", bool(subject.experts)), ("active", bool(subject.experts)),
                                    ("state", True), ("ring,", True), ("KV,", True), ("Sequences", True),
                                    ("config.json", True)):
                    self.assertEqual(word in lines, there, word)
                for text in (*subject.printed, "read: ", "ignored: ", "\n    64", " batch 256"):
                    self.assertIn(text, page)


if __name__ == "__main__":
    unittest.main()
