"""`replayeval run` where the config and the checkpoint do not fit each other: settings that a model does not have are refused
under their own line, sequences longer than the model promises are decoded and said to be."""

import json
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import program  # noqa: E402
import tiny_checkpoint  # noqa: E402

QWEN = program.ROOT / "checkpoints" / "tiny-qwen3-next"

CONFIG = """name: fit
checkpoint: CHECKPOINT
numerics: {NUMERICS}
arms:
  - {name: exact, executor: exact}
  - {name: replay, executor: replay, RING}
workloads:
  - {name: ids, kind: perplexity, sources: [{name: ids, random_ids: {documents: 2, tokens: LENGTH}}], context: LENGTH}
"""


class RunAndModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="replayeval-fit-"))
        tiny_checkpoint.make_checkpoint(cls.folder / "mamba")  # promises 512 positions

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def run_config(self, checkpoint="mamba", numerics="norm_span: published", ring="buffer_len: 4", length=40):
        text = CONFIG.replace("CHECKPOINT", str(checkpoint)).replace("NUMERICS", numerics).replace("RING", ring)
        (self.folder / "config.yaml").write_text(text.replace("LENGTH", str(length)))
        shutil.rmtree(self.folder / "out", ignore_errors=True)
        return program.call("run", self.folder / "config.yaml", "--output", self.folder / "out", "--quiet")

    def expect_refused(self, *parts, **changes):
        done = self.run_config(**changes)
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)
        self.assertFalse((self.folder / "out").exists())

    def test_numerics_of_layers_that_the_model_does_not_have(self):
        for key in ("beta", "log_decay", "qk_norm"):
            self.expect_refused(f"config.yaml:3:{14 + len(key)}: key '{key}': means nothing for a nemotron_h model, which has "
                                "no delta-rule layers", numerics=f"{key}: float32")
        self.expect_refused("config.yaml:3:22: key 'dt_floor': means nothing for a qwen3_next model, which has no Mamba-2 "
                            "layers", checkpoint=QWEN, numerics="dt_floor: published")

    def test_numerics_of_layers_that_it_has(self):
        self.assertEqual(self.run_config(numerics="dt_floor: published").returncode, 0)
        self.assertEqual(self.run_config(checkpoint=QWEN, numerics="beta: float32").returncode, 0)

    def test_a_ring_form_that_the_model_does_not_have(self):
        self.expect_refused("config.yaml:6:49: key 'ring_form': arm 'replay' has deltas; expected inputs (or published) for a "
                            "nemotron_h model", ring="ring_form: deltas")

    def test_sequences_longer_than_the_model_promises(self):
        for length in (512, 513):
            done = self.run_config(length=length)
            self.assertEqual(done.returncode, 0, done.stderr)
            workload = json.loads((self.folder / "out" / "results.json").read_text())["workloads"][0]
            warning = "sequences of up to 513 tokens; the checkpoint's config.json promises 512 positions"
            if length == 512:
                self.assertNotIn("warnings", workload["data"])
                self.assertNotIn("promises", done.stderr)
            else:
                self.assertEqual(workload["data"]["warnings"], [warning])
                self.assertIn(f"workload 'ids': {warning}", done.stderr)
                self.assertIn(warning, done.stdout.replace("\n", " "))
                self.assertIn(warning, (self.folder / "out" / "report.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
