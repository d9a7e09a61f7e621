"""`replayeval run` and `inspect` where there is a config.json and nothing else: no weights, no tokenizer, no text."""

import json
import pathlib
import resource
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import program  # noqa: E402
import tiny_checkpoint  # noqa: E402

CONFIG = """
name: random
seed: SEED
checkpoint: model.json
weights: random
bootstrap_samples: 200
arms:
  - {name: exact, executor: exact, state_storage: float32}
  - {name: exact-again, executor: exact, state_storage: float32}
  - {name: replay, executor: replay, state_storage: bfloat16, ring_storage: bfloat16, buffer_len: 4}
workloads:
  - {name: ids, kind: perplexity, sources: [{random_ids: {documents: 4, tokens: 60, seed: 3}}], context: 32}
"""


# Three groups, whose gated norm mamba_ssm's kernels and transformers' inference do not span alike.
GROUPS = {
    "model_type": "bamba", "vocab_size": 300, "hidden_size": 36, "intermediate_size": 40, "num_hidden_layers": 2,
    "attn_layer_indices": [], "mamba_n_heads": 3, "mamba_n_groups": 3, "mamba_d_head": 24, "mamba_d_state": 16,
    "max_position_embeddings": 512,
}


class RandomWeights(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="replayeval-random-"))
        self.addCleanup(shutil.rmtree, self.folder, True)
        (self.folder / "model.json").write_text(json.dumps(tiny_checkpoint.CONFIG))

    def results_of(self, seed):
        (self.folder / "run.yaml").write_text(CONFIG.replace("SEED", str(seed)))
        output = self.folder / f"out-{seed}"
        done = program.call("run", self.folder / "run.yaml", "--output", output, "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads((output / "results.json").read_text()), (output / "report.md").read_text()

    def test_a_paired_run_over_random_ids(self):
        results, report = self.results_of(5)
        self.assertEqual((results["checkpoint"]["weights"], results["checkpoint"]["seed"]), ("random", 5))
        self.assertNotIn("tokenizer", results["checkpoint"])
        workload = results["workloads"][0]
        self.assertEqual(workload["data"]["tokens_scored"], 4 * 59)
        self.assertEqual(workload["divergence"]["exact-again"]["kl_max"]["value"], 0)
        self.assertGreater(workload["divergence"]["replay"]["kl_max"]["value"], 0)
        self.assertIn("random weights", report)
        self.assertNotIn("perplexity rises", report)
        other, _ = self.results_of(6)
        value = [r["workloads"][0]["arms"]["exact"]["metrics"]["mean_log_likelihood"]["value"] for r in (results, other)]
        self.assertNotEqual(*value)

    def test_results_say_what_the_gated_norm_spans(self):
        for group in ("bamba", "granitemoehybrid"):
            settings = {**GROUPS, "model_type": group}
            if group == "granitemoehybrid":
                del settings["attn_layer_indices"]
                settings.update(num_local_experts=0, shared_intermediate_size=40, layer_types=["mamba", "mamba"])
            (self.folder / "model.json").write_text(json.dumps(settings))
            likelihoods = []
            for span, channels in (("published", 24), ("transformers", 72)):
                with self.subTest(group, span=span):
                    text = CONFIG.replace("SEED", "5") + f"numerics: {{norm_span: {span}}}\n"
                    (self.folder / "run.yaml").write_text(text)
                    output = self.folder / f"{group}-{span}"
                    done = program.call("run", self.folder / "run.yaml", "--output", output, "--quiet")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    results = json.loads((output / "results.json").read_text())
                    self.assertEqual(results["numerics"]["norm_span"], span)
                    self.assertEqual(results["numerics"]["gated_norm_group_size"], channels)
                    self.assertIn("gated\\_norm\\_group\\_size", (output / "report.md").read_text())
                    metrics = results["workloads"][0]["arms"]["exact"]["metrics"]
                    likelihoods.append(metrics["mean_log_likelihood"]["value"])
            self.assertNotEqual(*likelihoods)

    def test_stored_weights_are_still_asked_for(self):
        (self.folder / "run.yaml").write_text(CONFIG.replace("SEED", "1").replace("weights: random\n", ""))
        done = program.call("run", self.folder / "run.yaml", "--output", self.folder / "out", "--quiet")
        self.assertEqual(done.returncode, 3)
        self.assertIn("checkpoint", done.stderr)

    def test_too_little_memory_is_one_line(self):
        """What LibTorch says of an allocation, without its stack of calls."""
        (self.folder / "model.json").write_text(json.dumps({**tiny_checkpoint.CONFIG, "vocab_size": 1 << 31}))
        (self.folder / "run.yaml").write_text(CONFIG.replace("SEED", "1"))
        limit = 64 << 30  # of 320 GiB, whatever the machine would promise
        done = program.call("run", self.folder / "run.yaml", "--output", self.folder / "out", "--quiet",
                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(f"allocate {(40 * 4) << 31} bytes", done.stderr)
        self.assertFalse((self.folder / "out").exists())

    def test_inspect_predicts_from_the_config_alone(self):
        done = program.call("inspect", self.folder / "model.json", "--json", "--memory", "1MiB", "--context", "100")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        elements = sum(weight.size for weight in tiny_checkpoint._weights(tiny_checkpoint.CONFIG).values())
        self.assertEqual((found["parameters"], found["active_parameters"]), (elements, elements))
        self.assertFalse(found["has_weights"])
        weights = 4 * elements
        state, conv, kv = 2 * 3 * 8 * 16 * 4, 2 * (24 + 32) * 3 * 4, 2 * 16 * 4
        self.assertEqual(found["fit"]["sequences"]["exact"]["float32"], (2**20 - weights) // (state + conv + 100 * kv))
        row = next(row for row in found["traffic"]["rows"]
                   if (row["buffer_len"], row["state"], row["ring"]) == (16, "float32", "float32"))
        dense = weights - 300 * 40 * 4  # all but the embeddings, of which a step reads a row a sequence
        for batch in (1, 64):
            rest = dense + batch * 40 * 4
            expected = (rest + batch * (row["replay_bytes_per_token"] + 100 * kv)) / (
                rest + batch * (row["exact_bytes_per_token"] + 100 * kv))
            self.assertAlmostEqual(row["step_ratio"][str(batch)], expected, places=12)

    def test_inspect_lists_unknown_keys(self):
        (self.folder / "model.json").write_text(json.dumps({**tiny_checkpoint.CONFIG, "attention_sinks": 4}))
        done = program.call("inspect", self.folder / "model.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("unknown: attention_sinks", done.stdout)

    def test_inspect_refuses_a_memory_that_is_none(self):
        done = program.call("inspect", self.folder / "model.json", "--memory", "80 gigs")
        self.assertEqual(done.returncode, 3)
        self.assertIn("80GiB", done.stderr)


if __name__ == "__main__":
    unittest.main()
