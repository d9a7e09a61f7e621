"""The bundled checkpoints' perplexity against transformers, on the same windows of held-out text."""

import json
import math
import pathlib
import shutil
import sys
import tempfile
import unittest

import numpy
import torch
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import program  # noqa: E402

CHECKPOINTS = program.ROOT / "checkpoints"
BOS = 1

ARMS = {
    "exact": "executor: exact, state_storage: float32",
    "replay": "executor: replay, state_storage: float32, ring_storage: float32, buffer_len: 16",
}
INPUTS_RING = {"inputs": "executor: replay, state_storage: float32, ring_storage: float32, ring_form: inputs, buffer_len: 16"}

CONFIG = f"""
name: bundled-perplexity
checkpoint: {{checkpoint}}
compute_dtype: float32
arms:
{{arms}}
workloads:
  - name: held-out
    kind: perplexity
    sources:
      - {{{{name: anarchism, path: "{program.ROOT}/.data/text/heldout/anarchism/*.txt", max_documents: 2, max_tokens: 3000}}}}
      - {{{{name: wordnet, path: "{program.ROOT}/.data/text/heldout/wordnet/*.txt", max_documents: 2, max_tokens: 2000}}}}
    context: 1024
    stride: 1024
    bos: true
"""


def windows_of(index):
    """(inputs, targets, rows) of each window, from text.index.npy: document, position, window position, token id."""
    offsets = index[:, 1] - index[:, 2]
    for document in numpy.unique(index[:, 0]):
        last = BOS
        of_document = index[:, 0] == document
        for offset in numpy.unique(offsets[of_document]):
            rows = numpy.nonzero(of_document & (offsets == offset))[0]
            targets = index[rows, 3]
            yield numpy.concatenate([[last], targets[:-1]]), targets, rows
            last = targets[-1]


def log_probabilities(checkpoint, index):
    """float64, of each row of the index, by transformers."""
    model = transformers.AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32).eval()
    found = numpy.zeros(len(index))
    with torch.no_grad():
        for inputs, targets, rows in windows_of(index):
            logits = model(torch.from_numpy(inputs)[None], use_cache=False).logits[0].double()
            found[rows] = torch.log_softmax(logits, -1).gather(1, torch.from_numpy(targets)[:, None])[:, 0].numpy()
    return found


class BundledPerplexity(unittest.TestCase):
    def assert_equals_transformers(self, checkpoint, arms):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="replayeval-ppl-"))
        self.addCleanup(shutil.rmtree, folder, True)
        lines = "\n".join(f"  - {{name: {name}, {arm}}}" for name, arm in arms.items())
        (folder / "config.yaml").write_text(CONFIG.format(checkpoint=checkpoint, arms=lines))
        done = program.call("run", folder / "config.yaml", "--output", folder / "out", "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        workload = json.loads((folder / "out" / "results.json").read_text())["workloads"][0]
        index = numpy.load(folder / "out" / "tokens" / "held-out.index.npy")
        ours = numpy.load(folder / "out" / "tokens" / "held-out.exact.npy")
        self.assertEqual(len(index), 5000)

        theirs = log_probabilities(checkpoint, index)
        expected = math.exp(-theirs.mean())
        got = workload["arms"]["exact"]["metrics"]["perplexity"]["value"]
        print(f"{checkpoint.name}: perplexity on {len(index)} tokens: ours {got:.8f}, transformers {expected:.8f}; "
              f"largest log-probability difference {abs(ours - theirs).max():.2e}")
        self.assertLess(abs(got / expected - 1), 5e-5)  # four significant digits
        self.assertLess(got, 200)  # a model that has learnt something: uniform would be 4096
        for name in set(arms) - {"exact"}:
            self.assertLess(abs(workload["deltas"][name]["perplexity_relative"]["value"]), 1e-5, name)

    def test_nemotron_h(self):
        self.assert_equals_transformers(CHECKPOINTS / "tiny-nemotron-h", ARMS)

    def test_qwen3_next(self):
        self.assert_equals_transformers(CHECKPOINTS / "tiny-qwen3-next", {**ARMS, **INPUTS_RING})


if __name__ == "__main__":
    unittest.main()
