"""`prompt: prefill` of perplexity: the first tokens of each window as servers compute prompts, the others through the arms.
Against the decode path, arm by arm, and against transformers."""

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
sys.path.insert(0, str(pathlib.Path(__file__).parent / "harness"))
import program  # noqa: E402
import random_checkpoints  # noqa: E402

CONTEXT, STRIDE, PREFILL = 80, 60, 37  # neither a multiple of a block, a ring or a chunk
ARMS = """
  - {name: exact, executor: exact, state_storage: float32}
  - {name: again, executor: exact, state_storage: float32}
  - {name: replay, executor: replay, state_storage: float32, ring_storage: float32, buffer_len: 7}
  - {name: exact-bf16, executor: exact, state_storage: bfloat16}
  - {name: replay-bf16, executor: replay, state_storage: bfloat16, ring_storage: bfloat16, buffer_len: 7}
"""


class PrefillPerplexity(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="replayeval-prefill-"))
        text = (program.ROOT / "checkpoints" / "tiny-nemotron-h" / "README.md").read_text(encoding="utf-8")
        for index, (begin, end) in enumerate(((0, 1500), (1500, 1560), (1560, 2600))):
            (cls.folder / f"text{index}.txt").write_text(text[begin:end], encoding="utf-8")
        cls.runs = {}
        for name in ("random-bamba", "random-qwen3-next"):
            random_checkpoints.make(name, cls.folder / name)
            for prompt in (f"prefill, prefill_tokens: {PREFILL}", "decode"):
                cls.runs[name, prompt.partition(",")[0]] = cls.run_config(name, prompt)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @classmethod
    def run_config(cls, name, prompt):
        out = cls.folder / f"{name}-{prompt.partition(',')[0]}"
        (cls.folder / "config.yaml").write_text(
            f"name: prefill\ncheckpoint: {name}\nbootstrap_samples: 100\nnumerics: {{norm_span: transformers}}\n"
            f"arms:{ARMS}workloads:\n  - {{name: text, kind: perplexity, sources: [\"text*.txt\"], context: {CONTEXT}, "
            f"stride: {STRIDE}, block: 32, batch: 3, prompt: {prompt}}}\n")
        done = program.call("run", cls.folder / "config.yaml", "--output", out, "--quiet")
        assert done.returncode == 0, done.stderr
        return out, done

    def workload(self, name, prompt):
        return json.loads((self.runs[name, prompt][0] / "results.json").read_text())["workloads"][0]

    def index(self, name, prompt):
        return numpy.load(self.runs[name, prompt][0] / "tokens" / "text.index.npy")

    def log_probs(self, name, prompt, arm):
        return numpy.load(self.runs[name, prompt][0] / "tokens" / f"text.{arm}.npy")

    def test_only_predictions_behind_the_prompt_count(self):
        for name in ("random-bamba", "random-qwen3-next"):
            prefilled, decoded = self.index(name, "prefill"), self.index(name, "decode")
            self.assertGreater(prefilled[:, 2].min(), PREFILL)  # tokens decoded before the prediction, prompt included
            expected = decoded[decoded[:, 2] > PREFILL]
            numpy.testing.assert_array_equal(prefilled, expected)
            self.assertLess(len(prefilled), len(decoded))

    def pairs(self, name, arm):
        """Log-probabilities of the predictions that count both ways."""
        decoded = self.index(name, "decode")
        return self.log_probs(name, "prefill", arm), self.log_probs(name, "decode", arm)[decoded[:, 2] > PREFILL]

    def test_float32_arms_do_not_see_the_difference(self):
        for name in ("random-bamba", "random-qwen3-next"):
            # Exact: dense products and attention over other blocks. Replay: its rings are empty behind the prompt, so that it
            # also sums in another order.
            for arm, bound in (("exact", 2e-5), ("replay", 1e-4)):
                prefilled, decoded = self.pairs(name, arm)
                self.assertLess(abs(prefilled - decoded).max(), bound, (name, arm))
            self.assertEqual(self.workload(name, "prefill")["deltas"]["again"]["mean_log_likelihood"]["value"], 0)

    def test_arms_that_round_begin_at_a_state_rounded_once(self):
        for name in ("random-bamba", "random-qwen3-next"):
            exact_prefilled, exact_decoded = self.pairs(name, "exact")
            first = self.index(name, "prefill")[:, 2] <= PREFILL + 3
            self.assertGreater(first.sum(), 40)
            for arm in ("exact-bf16", "replay-bf16"):
                prefilled, decoded = self.pairs(name, arm)
                once = abs(prefilled - exact_prefilled)[first].mean()
                many_times = abs(decoded - exact_decoded)[first].mean()
                self.assertGreater(once, 1e-4, (name, arm))
                self.assertLess(once * 1.3, many_times, (name, arm))

    def test_perplexity_is_transformers(self):
        for name in ("random-bamba", "random-qwen3-next"):
            model = transformers.AutoModelForCausalLM.from_pretrained(self.folder / name, dtype=torch.float32).eval()
            index, ours = self.index(name, "prefill"), self.log_probs(name, "prefill", "exact")
            tokens = self.documents(name)
            theirs = numpy.zeros(len(index))
            seen = None  # the window whose logits we have
            for row, (document, position, window_position, target) in enumerate(index):
                begin = position - window_position
                if seen != (document, begin):
                    seen = (document, begin)
                    window = torch.tensor([tokens[document][begin:begin + CONTEXT]])
                    with torch.no_grad():
                        logits = torch.log_softmax(model(window, use_cache=False).logits[0].double(), -1)
                self.assertEqual(tokens[document][position], target)
                theirs[row] = logits[window_position - 1, target]
            self.assertLess(abs(ours - theirs).max(), 1e-3)
            got = self.workload(name, "prefill")["arms"]["exact"]["metrics"]["perplexity"]["value"]
            self.assertLess(abs(got / math.exp(-theirs.mean()) - 1), 1e-4)

    def documents(self, name):
        tokenizer = transformers.AutoTokenizer.from_pretrained(self.folder / name)
        return [tokenizer((self.folder / f"text{i}.txt").read_text(encoding="utf-8"))["input_ids"] for i in range(3)]

    def test_results_and_reports_say_so(self):
        folder, done = self.runs["random-bamba", "prefill"]
        workload = self.workload("random-bamba", "prefill")
        self.assertEqual(workload["data"]["prompt"], "prefill")
        self.assertEqual(workload["data"]["prefill_tokens"], PREFILL)
        self.assertEqual(workload["data"]["tokens_scored"], len(self.index("random-bamba", "prefill")))
        # Every window decodes what is behind its prompt: here as many as are predicted, or more where windows overlap.
        self.assertGreaterEqual(workload["data"]["tokens_decoded"], workload["data"]["tokens_scored"])
        self.assertLess(workload["data"]["tokens_decoded"], self.workload("random-bamba", "decode")["data"]["tokens_decoded"])
        said = f"prompt: prefill of each window's first {PREFILL} tokens"
        self.assertIn(said, done.stdout.replace("\n  ", " "))
        self.assertIn(said, (folder / "report.md").read_text(encoding="utf-8"))
        self.assertNotIn("prefill_tokens", self.workload("random-bamba", "decode")["data"])


if __name__ == "__main__":
    unittest.main()
