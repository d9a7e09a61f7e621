"""The memory of a run does not grow with the text, beyond the per-token arrays."""

import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import program  # noqa: E402
import tiny_checkpoint  # noqa: E402

CONFIG = """
name: memory
checkpoint: checkpoint
bootstrap_samples: 100
arm_defaults: {executor: replay, state_storage: float32, ring_storage: float32}
arms: [{name: one}, {name: two}]
workloads:
  - name: text
    kind: perplexity
    sources: [{name: prose, path: "text/*.txt"}]
    context: 128
    batch: 4
"""

# A token has an index row and, for each arm, its log-probability, divergences and rank: 80 bytes for two arms as measured
# in long runs, up to twice that here, where vectors that grow by doubling still show. Its hidden states would be
# 2 arms x 40 x 4 = 320 bytes more, its logits 2400.
BYTES_A_TOKEN = 280


def peak_memory(work, documents):
    """Scored tokens and the largest resident set, in bytes, of a run on this many documents of one length."""
    (work / "text").mkdir(exist_ok=True)
    for index in range(documents):
        (work / "text" / f"d{index:03}.txt").write_text(tiny_checkpoint.text(400, index))
    output = work / f"out{documents}"
    peak = program.peak_memory("run", work / "config.yaml", "--output", output, "--quiet")
    results = json.loads((output / "results.json").read_text())
    return results["workloads"][0]["data"]["tokens_scored"], peak


class Memory(unittest.TestCase):
    def test_four_times_the_text_takes_no_more_than_its_arrays(self):
        with tempfile.TemporaryDirectory(prefix="replayeval-memory-") as folder:
            work = pathlib.Path(folder)
            tiny_checkpoint.make_checkpoint(work / "checkpoint")
            (work / "config.yaml").write_text(CONFIG)
            tokens, bytes_ = peak_memory(work, 24)
            more_tokens, more_bytes = peak_memory(work, 96)
        self.assertGreater(more_tokens, 3.9 * tokens)
        growth = (more_bytes - bytes_) / (more_tokens - tokens)
        print(f"{tokens} tokens: {bytes_ >> 20} MiB; {more_tokens} tokens: {more_bytes >> 20} MiB; "
              f"{growth:.0f} bytes a token")
        self.assertLess(growth, BYTES_A_TOKEN)


if __name__ == "__main__":
    unittest.main()
