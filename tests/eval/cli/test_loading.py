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

SIZES = {"hidden_size": 768, "intermediate_size": 12288}
# Both outweigh what the program's start takes and gives back: 115 MiB with CUDA libraries.
FEW_LAYERS = {**SIZES, "hybrid_override_pattern": "M-*-M-", "num_hidden_layers": 6}
MANY_LAYERS = {**SIZES, "hybrid_override_pattern": "M-*-M--MM-*-M--M", "num_hidden_layers": 16}
SHARDS = 10


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
        few = write_checkpoint(self.work / "few", FEW_LAYERS)
        many = write_checkpoint(self.work / "many", MANY_LAYERS)
        shard = max(file.stat().st_size for file in (self.work / "many").glob("*.safetensors"))
        model = 4 * (many - few)
        self.assertGreater(model, 4 * shard)  # a model that is held twice would show
        above = self.peak(self.work / "many") - self.peak(self.work / "few") - model
        print(f"{model >> 20} MiB of float32 from shards of at most {shard >> 20} MiB: {above / 2**20:.1f} MiB more")
        self.assertLess(above, 2 * shard)
        self.assertGreater(above, -model // 10, "the model was not really there")


if __name__ == "__main__":
    unittest.main()
