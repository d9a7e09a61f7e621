"""The whole program holds the model and little else while it loads: no more than two shards above what it computes with."""

import json
import pathlib
import sys
import tempfile
import unittest

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import program  # noqa: E402
import tiny_checkpoint  # noqa: E402

LARGE = {"hidden_size": 768, "intermediate_size": 12288, "hybrid_override_pattern": "M-*-M--M", "num_hidden_layers": 8}
SHARDS = 5


def write_checkpoint(folder, settings):
    """Stored in float16, so that what is loaded to compute in float32 is no view of the files. Returns the elements."""
    folder.mkdir()
    config = {**tiny_checkpoint.CONFIG, **settings}
    weights = {name: weight.astype(numpy.float16) for name, weight in tiny_checkpoint._weights(config).items()}
    tiny_checkpoint.write_weights(folder, weights, SHARDS)
    (folder / "config.json").write_text(json.dumps(config))
    return sum(weight.size for weight in weights.values())


class Loading(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="replayeval-loading-")
        self.addCleanup(scratch.cleanup)
        self.work = pathlib.Path(scratch.name)
        (self.work / "ids.json").write_text("[1, 5]")

    def peak(self, checkpoint):
        """Of a program that loads the checkpoint and decodes two tokens."""
        return program.peak_memory("logits", checkpoint, "--ids", self.work / "ids.json", "--out", self.work / "out.npy")

    def test_peak_of_the_program(self):
        few = write_checkpoint(self.work / "tiny", {})
        many = write_checkpoint(self.work / "large", LARGE)
        shard = max(file.stat().st_size for file in (self.work / "large").glob("*.safetensors"))
        model = 4 * (many - few)
        self.assertGreater(model, 4 * shard)  # a model that is held twice would show
        above = self.peak(self.work / "large") - self.peak(self.work / "tiny") - model
        print(f"{model >> 20} MiB of float32 from shards of at most {shard >> 20} MiB: {above / 2**20:.1f} MiB more")
        self.assertLess(above, 2 * shard)
        self.assertGreater(above, -model // 10, "the model was not really there")


if __name__ == "__main__":
    unittest.main()
