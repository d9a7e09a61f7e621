"""Logits of `replayeval logits` against transformers', float32 on the CPU, and the proof that the comparison would notice.

An architecture's test file fills in a `ParityTest`:

    class Bamba(parity.ParityTest):
        config_class, model_class = BambaConfig, BambaForCausalLM
        base = dict(...)                                # settings that all cases share
        def test_biases(self):
            self.check(parity.Case(dict(...), dtype="bfloat16", shards=3))

`check` builds a random model whose every parameter matters, writes it as a checkpoint, and compares the logits of both modes
and of replay arms with the one-call logits of transformers' model as loaded from that folder. Then it perturbs stored
tensors one by one, by independent factors from 0.9 to 1.1 for each element (an expert's part of a fused tensor counts as
one), and requires that the comparison fails: eight tensors a case, all of them with REPLAYEVAL_FULL_SWEEP=1.

`check_bfloat16` compares in bfloat16, where no two implementations agree: ours may be as far from the float32 logits as
transformers in bfloat16 is, and a half more. REPLAYEVAL_DEVICE=cuda runs ours on the GPU, in all comparisons.
"""

import copy
import dataclasses
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import typing
import unittest

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

transformers.utils.logging.disable_progress_bar()

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = os.environ.get("REPLAYEVAL", str(ROOT / "build/release/bin/replayeval"))
FULL_SWEEP = os.environ.get("REPLAYEVAL_FULL_SWEEP") == "1"
DEVICE = ("--device", os.environ.get("REPLAYEVAL_DEVICE", "cpu"))
FLOAT32 = ("--compute-dtype", "float32")
TOLERANCE = 2e-4  # of the logit range
TOKENS = 45       # almost three chunks of transformers' path (chunk_size=16), almost seven rings of ours
ARMS = {
    "teacher-forced": ("--mode", "teacher_forced"),
    "stepwise": ("--mode", "stepwise"),
    "replay of 7": ("--executor", "replay", "--buffer-len", "7"),
}
# Of the delta rule, whose ring holds deltas unless told otherwise.
DELTA_RULE_ARMS = {
    **ARMS,
    "stepwise replay of 5": ("--mode", "stepwise", "--executor", "replay", "--buffer-len", "5"),
    "replay of 7, inputs": ("--executor", "replay", "--buffer-len", "7", "--ring-form", "inputs"),
    "replay of 4, inputs, sequential": ("--executor", "replay", "--buffer-len", "4", "--ring-form", "inputs", "--flush",
                                        "sequential", "--route", "state_and_output"),
}
DELTA_RULE_TOKENS = 140  # more than two chunks of transformers' path, which are of 64
SAMPLED_TENSORS = 8
# Factors on the perturbation of a tensor that may only steer a choice: one of them must change a choice.
NUDGES = (1.0, 3.0, 9.0, 27.0)
FUSED_EXPERTS = re.compile(r"experts\.\w+$|block_sparse_moe\.(in|out)put_linear\.weight$")


@dataclasses.dataclass
class Case:
    settings: dict                 # keyword arguments of the configuration class, over the architecture's base
    dtype: str = "float32"         # of the stored tensors; "mixed": float32, bfloat16 and float16 in turn
    shards: int = 1
    prepare: typing.Optional[typing.Callable] = None  # model -> None, once its parameters are drawn
    # (tensors by name, config.json) -> None, edits both in place: another published layout of the same weights
    rewrite: typing.Optional[typing.Callable] = None
    options: tuple = ()            # of `replayeval logits`
    tokens: int = TOKENS
    seed: int = 0


def random_values(key, shape):
    """Values of a parameter, away from zero, from one and from each other, so that every parameter matters."""
    noise = torch.randn(shape)
    module, _, leaf = key.rpartition(".")
    if leaf == "A_log":
        return 0.8 * noise  # A from about -0.2 to -5: memory of a few to a few dozen tokens
    if leaf == "dt_bias":
        return -1.5 + noise
    if leaf == "D" or (leaf == "weight" and len(shape) == 1):  # one-dimensional weights are those of norms
        return 1.0 + 0.3 * noise
    if module.endswith("conv1d") and leaf == "weight":
        return 0.5 * noise
    if leaf == "e_score_correction_bias":
        return 0.1 * noise  # of the order of the scores' differences: it changes choices, and every expert is chosen
    if leaf.endswith("bias"):
        return 0.3 * noise
    if module.rpartition(".")[2].startswith("embed"):
        return noise
    return noise * (1.2 / shape[-1] ** 0.5)


def build_model(config_class, model_class, case, base, values=random_values):
    """A float32 model of random parameters (and persistent buffers)."""
    torch.manual_seed(case.seed)
    model = model_class(config_class(**{**base, **case.settings})).eval()
    drawn = set()
    with torch.no_grad():
        for key, tensor in model.state_dict().items():
            if tensor.is_floating_point() and tensor.data_ptr() not in drawn:
                tensor.copy_(values(key, tensor.shape))
                drawn.add(tensor.data_ptr())  # tied parameters are one
        if case.prepare is not None:
            case.prepare(model)
    return model


def stored_dtype(case, index):
    names = ("float32", "bfloat16", "float16")
    return getattr(torch, names[index % 3] if case.dtype == "mixed" else case.dtype)


def write_folder(folder, tensors, config, shards=1):
    """A checkpoint folder: tensors dealt out to the shards in turn, so that every layer lies in several."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.safetensors*"):
        old.unlink()
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    names = sorted(tensors)
    if shards == 1:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        return
    weight_map = {}
    for shard in range(shards):
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        part = {name: tensors[name] for name in names[shard::shards]}
        save_file(part, folder / file, metadata={"format": "pt"})
        weight_map.update(dict.fromkeys(part, file))
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    index = {"metadata": {"total_size": size}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def read_tensors(folder):
    tensors = {}
    for file in sorted(folder.glob("*.safetensors")):
        tensors.update(load_file(file))
    return tensors


def save_model(model, case, folder):
    """Writes the folder as the case says; returns the float32 model that transformers reads from it."""
    with tempfile.TemporaryDirectory() as scratch:
        model.save_pretrained(scratch)
        tensors = read_tensors(pathlib.Path(scratch))
        config = json.loads((pathlib.Path(scratch) / "config.json").read_text())
    tensors = {name: tensors[name].to(stored_dtype(case, i)) for i, name in enumerate(sorted(tensors))}
    write_folder(folder, tensors, config, case.shards)
    reference, loading = type(model).from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    problems = {kind: keys for kind, keys in loading.items() if keys}
    if problems:
        raise AssertionError(f"transformers did not read its own folder whole: {problems}")
    if case.rewrite is not None:
        case.rewrite(tensors, config)
        write_folder(folder, tensors, config, case.shards)
    return reference.eval()


def reference_logits(model, ids):
    """float32 [tokens, vocab] of one call, the path whose arithmetic transformers documents."""
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False).logits[0].float().numpy()


def normalise_each_group(model, groups):
    """Gives the model's gated norms the span of mamba_ssm's kernels, each group by itself; returns how many it has."""
    norms = [module for module in model.modules() if type(module).__name__.endswith("RMSNormGated")]

    def forward(norm, hidden, gate):
        parts = (hidden * torch.nn.functional.silu(gate)).unflatten(-1, (groups, -1))
        scale = torch.rsqrt(parts.square().mean(-1, keepdim=True) + norm.variance_epsilon)
        return norm.weight * (parts * scale).flatten(-2)

    for norm in norms:
        norm.forward = lambda hidden, gate, norm=norm: forward(norm, hidden, gate)
    return len(norms)


def bfloat16_twin(model):
    """The model in bfloat16, with rotary frequencies in float32 as a model loaded in bfloat16 has them."""
    twin = copy.deepcopy(model).to(torch.bfloat16)
    twin.set_experts_implementation("eager")  # the grouped product may fail in bfloat16 on the CPU
    exact = dict(model.named_buffers())
    for name, buffer in twin.named_buffers():
        if name.endswith("inv_freq"):
            buffer.data = exact[name].clone()
    return twin


def random_ids(vocab_size, tokens, seed=1):
    return random.Random(seed).choices(range(vocab_size), k=tokens)


def write_ids(file, ids):
    pathlib.Path(file).write_text(json.dumps(ids))


def replayeval_logits(folders, ids, *options):
    """float32 [tokens, vocab] of each folder, from one start of the program."""
    with tempfile.TemporaryDirectory() as scratch:
        ids_file = pathlib.Path(scratch) / "ids.json"
        write_ids(ids_file, ids)
        outs = [pathlib.Path(scratch) / f"{i}.npy" for i in range(len(folders))]
        command = [PROGRAM, "logits", *map(str, folders), "--ids", str(ids_file), *DEVICE, *options]
        for out in outs:
            command += ["--out", str(out)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: exit {done.returncode}: {done.stderr}")
        return [np.load(out) for out in outs]


def relative_difference(ours, theirs):
    """Largest absolute difference, as a share of the range of the reference's logits."""
    assert ours.shape == theirs.shape and ours.dtype == np.float32, (ours.shape, theirs.shape, ours.dtype)
    return float(np.abs(ours - theirs).max() / (theirs.max() - theirs.min()))


@dataclasses.dataclass(frozen=True)
class Perturbation:
    name: str                       # of the stored tensor
    expert: typing.Optional[int]    # its part, if the tensor holds all experts
    strength: float                 # of the elements' factors: 1 +- 0.1 * strength

    def apply(self, tensor, seed):
        generator = torch.Generator().manual_seed(seed)
        changed = tensor.to(torch.float32).clone()
        part = changed if self.expert is None else changed[self.expert]
        part.mul_(1.0 + self.strength * (0.2 * torch.rand(part.shape, generator=generator) - 0.1))
        return changed.to(tensor.dtype).contiguous()


def write_perturbed(original, folder, perturbation, seed):
    """A copy of the folder in which only the shard of the perturbed tensor is a new file."""
    folder.mkdir()
    for file in original.iterdir():
        if file.suffix == ".safetensors":
            tensors = load_file(file)
            if perturbation.name in tensors:
                tensors[perturbation.name] = perturbation.apply(tensors[perturbation.name], seed)
                save_file(tensors, folder / file.name, metadata={"format": "pt"})
                continue
        (folder / file.name).symlink_to(file)


class ParityTest(unittest.TestCase):
    """Base of the architectures' tests; its name begins with no `test`, and it has no test of its own."""

    config_class = model_class = None
    base = {}
    arms = ARMS
    values = staticmethod(random_values)
    # Stored tensors that may change nothing but a choice.
    steering = re.compile(r"\.(gate|router|router\.layer)\.weight$|e_score_correction_bias$")
    unread = re.compile(r"^model\.visual\.|^mtp\.")  # stored tensors that are no part of the language model

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.folder = self.scratch / "checkpoint"

    def save(self, case):
        """The case's model as transformers reads it, and token ids."""
        model = build_model(self.config_class, self.model_class, case, self.base, self.values)
        reference = save_model(model, case, self.folder)
        return reference, random_ids(reference.config.get_text_config().vocab_size, case.tokens)

    def assert_parity(self, ours, theirs, label):
        difference = relative_difference(ours, theirs)
        print(f"{label}: largest difference {difference:.2e} of the logit range", file=sys.stderr)
        self.assertLessEqual(difference, TOLERANCE, label)

    def check(self, case):
        reference, ids = self.save(case)
        theirs = reference_logits(reference, ids)
        spread = float(theirs.max() - theirs.min())
        self.assertTrue(1.0 < spread < 1000.0 and theirs.std() > spread / 40, (spread, theirs.std()))
        for arm, options in self.arms.items():
            ours = replayeval_logits([self.folder], ids, *FLOAT32, *case.options, *options)[0]
            self.assert_parity(ours, theirs, f"{self._testMethodName}, {arm}")
        self.check_every_tensor_matters(case, ids, theirs)

    def check_published_span(self, case, groups):
        """The default span of a gated norm with several groups: each by itself, as transformers' inference has it not."""
        reference, ids = self.save(case)
        whole = reference_logits(reference, ids)
        self.assertGreater(normalise_each_group(reference, groups), 0)
        each = reference_logits(reference, ids)
        for arm, options in ARMS.items():
            ours = replayeval_logits([self.folder], ids, *FLOAT32, *options)[0]
            self.assert_parity(ours, each, f"{self._testMethodName}, {arm}")
            self.assertGreater(relative_difference(ours, whole), 100 * TOLERANCE)

    def check_bfloat16(self, case):
        reference, ids = self.save(case)
        exact = reference_logits(reference, ids)
        spread = exact.max() - exact.min()

        def error(logits):
            return float(np.sqrt(np.mean((logits - exact) ** 2)) / spread)

        theirs = error(reference_logits(bfloat16_twin(reference), ids))
        for arm, options in self.arms.items():
            ours = error(replayeval_logits([self.folder], ids, *case.options, "--compute-dtype", "bfloat16", *options)[0])
            print(f"{self._testMethodName}, {arm}: RMS difference from float32 {ours:.2e} of the logit range, "
                  f"transformers' {theirs:.2e}", file=sys.stderr)
            self.assertLessEqual(ours, 1.5 * theirs, arm)
            self.assertGreater(ours, 0.02 * theirs, f"{arm}: that close, it cannot have been bfloat16")

    def perturbations(self):
        """All that can be perturbed, the sampled ones first: one of each kind (whatever the layer) before a second one."""
        found = []
        for name, tensor in sorted(read_tensors(self.folder).items()):
            if tensor.numel() == 0 or self.unread.search(name):  # the former: a layer that has no size
                continue
            experts = range(tensor.shape[0]) if FUSED_EXPERTS.search(name) and tensor.dim() == 3 else [None]
            found += [(name, expert) for expert in experts]
        random.Random(os.environ.get("REPLAYEVAL_SWEEP_SEED", self._testMethodName)).shuffle(found)
        seen = {}
        ranks = {}
        for name, expert in found:
            kind = re.sub(r"\d+", "#", name)
            ranks[name, expert] = seen[kind] = seen.get(kind, 0) + 1
        return sorted(found, key=ranks.get)

    def check_every_tensor_matters(self, case, ids, theirs):
        """The test of the test: no tensor can be wrong by up to a tenth unnoticed."""
        found = self.perturbations()
        chosen = found if FULL_SWEEP else found[:SAMPLED_TENSORS]
        trials = [Perturbation(name, expert, strength) for name, expert in chosen
                  for strength in (NUDGES if self.steering.search(name) else NUDGES[:1])]
        folders = [self.scratch / f"perturbed-{i}" for i in range(len(trials))]
        for i, (folder, trial) in enumerate(zip(folders, trials)):
            write_perturbed(self.folder, folder, trial, seed=i)
        moved = {}
        for trial, ours in zip(trials, replayeval_logits(folders, ids, *FLOAT32, *case.options)):
            key = trial.name, trial.expert
            moved[key] = max(moved.get(key, 0.0), relative_difference(ours, theirs))
        unnoticed = {key: difference for key, difference in moved.items() if not difference > TOLERANCE}
        self.assertEqual(unnoticed, {}, "perturbed, yet parity holds")
        least = min(moved, key=moved.get)
        print(f"{self._testMethodName}: {len(moved)} of {len(found)} tensors perturbed, least difference "
              f"{moved[least]:.1e} by {least[0]}", file=sys.stderr)
