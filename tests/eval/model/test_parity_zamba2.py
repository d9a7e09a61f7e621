"""zamba2 against transformers.

    REPLAYEVAL=build/cpu/bin/replayeval python3 -m unittest tests/eval/model/test_parity_zamba2.py
"""

import json
import pathlib
import sys
import unittest

from transformers import Zamba2Config, Zamba2ForCausalLM

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import parity  # noqa: E402

OPTIONS = ("--dt-floor", "transformers")
MAMBA, HYBRID = "linear_attention", "hybrid"


def old_spelling(tensors, config):
    """Layer names, rope_theta at the top and sizes that follow from others, as in the published folders."""
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    config["layers_block_type"] = ["mamba" if kind == MAMBA else kind for kind in config["layers_block_type"]]
    rope = config.pop("rope_parameters", None) or {"rope_theta": 10000.0}
    config.update(rope_theta=rope["rope_theta"], time_step_limit=None, attention_hidden_size=2 * hidden,
                  attention_head_dim=2 * hidden // heads, kv_channels=hidden // heads, num_query_groups=heads,
                  mamba_headdim=config["mamba_expand"] * hidden // config["n_mamba_heads"],
                  hybrid_layer_ids=[i for i, kind in enumerate(config["layers_block_type"]) if kind == HYBRID])


def repeat_shared_blocks(tensors, config):
    """The block of the first hybrid layer once more under the third, which uses it too."""
    first, third = [i for i, kind in enumerate(config["layers_block_type"]) if kind == HYBRID][0:3:2]
    prefix = f"model.layers.{first}.shared_transformer."
    for name in [name for name in tensors if name.startswith(prefix)]:
        tensors[name.replace(f".{first}.", f".{third}.", 1)] = tensors[name].clone()


def share_by_value(model):
    """transformers ties the shared blocks only if the head is tied, too; elsewhere they are one by value."""
    hybrid = [layer.shared_transformer for layer in model.model.layers if hasattr(layer, "shared_transformer")]
    for i, block in enumerate(hybrid):
        block.load_state_dict(hybrid[i % model.config.num_mem_blocks].state_dict())


def drop_repeats(tensors, config):
    hybrid = [i for i, kind in enumerate(config["layers_block_type"]) if kind == HYBRID]
    for layer in hybrid[config["num_mem_blocks"]:]:
        for name in [name for name in tensors if name.startswith(f"model.layers.{layer}.shared_transformer.")]:
            del tensors[name]


class Zamba2(parity.ParityTest):
    config_class, model_class = Zamba2Config, Zamba2ForCausalLM
    base = dict(vocab_size=211, hidden_size=72, intermediate_size=104, num_attention_heads=6, n_mamba_heads=6,
                mamba_ngroups=3, mamba_d_state=16, chunk_size=16, adapter_rank=12, max_position_embeddings=512,
                pad_token_id=None, use_mamba_kernels=False)

    def test_two_blocks_with_all_adapters(self):
        self.check(parity.Case(dict(layers_block_type=[MAMBA, HYBRID, HYBRID, MAMBA, HYBRID], num_hidden_layers=5,
                                    num_mem_blocks=2, use_shared_attention_adapter=True, use_mem_rope=True,
                                    add_bias_linear=True, rope_parameters=dict(rope_type="default", rope_theta=5e3)),
                               rewrite=old_spelling, options=OPTIONS))

    def test_grouped_heads_and_a_floor_that_bites(self):
        self.check(parity.Case(dict(layers_block_type=[HYBRID, MAMBA, HYBRID], num_hidden_layers=3,
                                    num_key_value_heads=2, time_step_min=0.1, tie_word_embeddings=False,
                                    hidden_act="gelu_pytorch_tanh", rms_norm_eps=1e-3),
                               dtype="bfloat16", shards=3, prepare=share_by_value, rewrite=drop_repeats,
                               options=OPTIONS))

    def test_more_blocks_than_uses(self):
        self.check(parity.Case(dict(layers_block_type=[MAMBA, HYBRID], num_hidden_layers=2, num_mem_blocks=3,
                                    hidden_size=96, num_attention_heads=4, n_mamba_heads=3, mamba_ngroups=1,
                                    mamba_d_state=64, mamba_d_conv=3, hidden_act="silu", use_mem_rope=True,
                                    rope_parameters=dict(rope_type="linear", rope_theta=1e4, factor=2.0)),
                               dtype="float16", options=OPTIONS))

    def test_mixed_types(self):
        self.check(parity.Case(dict(layers_block_type=[MAMBA, HYBRID, MAMBA, HYBRID, HYBRID, HYBRID],
                                    num_hidden_layers=6, num_mem_blocks=2, hidden_size=40, num_attention_heads=5,
                                    n_mamba_heads=10, mamba_ngroups=2, use_shared_attention_adapter=True),
                               dtype="mixed", shards=5, options=OPTIONS))

    def test_bfloat16(self):
        self.check_bfloat16(parity.Case(dict(layers_block_type=[MAMBA, HYBRID, MAMBA], num_hidden_layers=3, use_mem_rope=True),
                                        dtype="bfloat16", options=OPTIONS))

    def test_blocks_that_are_stored_with_every_use(self):
        case = parity.Case(dict(layers_block_type=[MAMBA, HYBRID, HYBRID, HYBRID], num_hidden_layers=4, num_mem_blocks=2),
                           rewrite=repeat_shared_blocks)
        reference, ids = self.save(case)
        ours = parity.replayeval_logits([self.folder], ids, *OPTIONS)[0]
        self.assert_parity(ours, parity.reference_logits(reference, ids), "a block stored twice")
        tensors = parity.read_tensors(self.folder)
        tensors["model.layers.3.shared_transformer.self_attn.o_proj.weight"][0, 0] += 1.0
        config = json.loads((self.folder / "config.json").read_text())
        parity.write_folder(self.folder, tensors, config)
        with self.assertRaisesRegex(AssertionError, 'exit 3.*layers.3.shared_transformer.self_attn.o_proj.weight.*copy of the '
                                                    'one under "model.layers.1.shared_transformer."'):
            parity.replayeval_logits([self.folder], ids)

    def test_the_dt_floors_differ(self):
        """The published code has no floor. Against transformers with none."""
        case = parity.Case(dict(layers_block_type=[MAMBA, HYBRID], num_hidden_layers=2, time_step_min=0.1))
        reference, ids = self.save(case)
        floored = parity.reference_logits(reference, ids)
        for layer in reference.model.layers:
            mixer = layer.mamba if hasattr(layer, "mamba") else layer.mamba_decoder.mamba
            mixer.time_step_limit = (0.0, float("inf"))
        ours = parity.replayeval_logits([self.folder], ids, "--dt-floor", "published")[0]
        self.assert_parity(ours, parity.reference_logits(reference, ids), "without a floor")
        self.assertGreater(parity.relative_difference(ours, floored), parity.TOLERANCE)

    def test_long_context_stretches_the_base(self):
        """The published code multiplies rope_theta by 8^(d / (d - 2)), which transformers no longer does."""
        dim = 2 * self.base["hidden_size"] // self.base["num_attention_heads"]
        theta = 1e4
        case = parity.Case(dict(layers_block_type=[HYBRID, HYBRID], num_hidden_layers=2, use_mem_rope=True,
                                rope_parameters=dict(rope_type="default", rope_theta=theta * 8 ** (dim / (dim - 2)))),
                           rewrite=lambda tensors, config: config.update(
                               use_long_context=True, rope_parameters=dict(rope_type="default", rope_theta=theta)))
        reference, ids = self.save(case)
        ours = parity.replayeval_logits([self.folder], ids, *OPTIONS)[0]
        self.assert_parity(ours, parity.reference_logits(reference, ids), "long context")


if __name__ == "__main__":
    unittest.main()
