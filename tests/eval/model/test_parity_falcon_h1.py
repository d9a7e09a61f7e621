"""falcon_h1 against transformers.

    REPLAYEVAL=build/cpu/bin/replayeval python3 -m unittest tests/eval/model/test_parity_falcon_h1.py
"""

import pathlib
import sys
import unittest

import torch
from transformers import FalconH1Config, FalconH1ForCausalLM

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import parity  # noqa: E402

# No two alike and none of them one: an order that is wrong, or a multiplier that is left out, shows.
MULTIPLIERS = dict(embedding_multiplier=2.3, lm_head_multiplier=0.7, attention_in_multiplier=0.8,
                   attention_out_multiplier=0.9375, key_multiplier=0.61, ssm_in_multiplier=1.25,
                   ssm_out_multiplier=0.77, ssm_multipliers=[0.73, 1.21, 0.57, 1.43, 0.89], mlp_multipliers=[0.88, 0.59])
BIASES = dict(attention_bias=True, mlp_bias=True, mamba_proj_bias=True, projectors_bias=True)


def old_spelling(tensors, config):
    """The keys of the published folders: rope_theta at the top, sizes and switches that nothing reads."""
    rope = config.pop("rope_parameters")
    config.update(rope_theta=rope["rope_theta"], rope_scaling=None, attn_layer_indices=None, mamba_use_mlp=True,
                  mlp_expansion_factor=8, head_dim=config["hidden_size"] // config["num_attention_heads"])


def step_by_step_logits(model, ids):
    """float32 [tokens, vocab] of transformers' cached decoding, one token a call."""
    cache, logits = None, []
    with torch.no_grad():
        for token in ids:
            out = model(torch.tensor([[token]]), past_key_values=cache, use_cache=True)
            cache = out.past_key_values
            logits.append(out.logits[0, 0].float())
    return torch.stack(logits).numpy()


class FalconH1(parity.ParityTest):
    config_class, model_class = FalconH1Config, FalconH1ForCausalLM
    base = dict(vocab_size=211, hidden_size=72, intermediate_size=104, num_hidden_layers=2, num_attention_heads=6,
                num_key_value_heads=2, mamba_d_ssm=96, mamba_n_heads=6, mamba_d_head=16, mamba_n_groups=3,
                mamba_d_state=24, mamba_chunk_size=16, max_position_embeddings=512, pad_token_id=None,
                rope_parameters=dict(rope_type="default", rope_theta=1e4))

    def test_gate_alone_with_all_multipliers(self):
        self.check(parity.Case(MULTIPLIERS, rewrite=old_spelling))

    def test_norm_before_gate_and_biases(self):
        self.check(parity.Case(dict(mamba_rms_norm=True, mamba_norm_before_gate=True, mamba_conv_bias=False, **BIASES),
                               dtype="bfloat16", shards=3))

    def test_gate_before_norm_with_limits_that_bite(self):
        self.check(parity.Case(dict(mamba_rms_norm=True, mamba_norm_before_gate=False, time_step_limit=(0.05, 0.4),
                                    mamba_d_ssm=None, mamba_d_head="auto", mamba_n_heads=9, mamba_n_groups=1,
                                    mamba_d_conv=3, num_key_value_heads=6, tie_word_embeddings=True, **MULTIPLIERS),
                               dtype="float16"))

    def test_wide_heads_in_mixed_types(self):
        self.check(parity.Case(dict(head_dim=20, hidden_size=88, num_attention_heads=4, num_key_value_heads=4,
                                    mamba_d_ssm=128, mamba_n_heads=2, mamba_d_head=64, mamba_n_groups=2,
                                    mamba_d_state=128, mamba_rms_norm=True, **MULTIPLIERS, **BIASES),
                               dtype="mixed", shards=4))

    def test_bfloat16(self):
        self.check_bfloat16(parity.Case(dict(mamba_rms_norm=True, **MULTIPLIERS), dtype="bfloat16"))

    def check_rotary(self, settings, reference_logits=parity.reference_logits):
        """Both modes; nothing is perturbed, the cases above did that."""
        settings = dict(rope_parameters=dict(rope_theta=1e3, **settings), num_hidden_layers=1)
        case = parity.Case(dict(settings, max_position_embeddings=64), tokens=60)
        reference, ids = self.save(case)
        theirs = reference_logits(reference, ids)
        for arm in ("teacher-forced", "stepwise"):
            ours = parity.replayeval_logits([self.folder], ids, *parity.ARMS[arm])[0]
            self.assert_parity(ours, theirs, f"{settings['rope_parameters']['rope_type']}, {arm}")
        return reference, ids, theirs

    def test_linear(self):
        self.check_rotary(dict(rope_type="linear", factor=3.0))

    def test_yarn(self):
        self.check_rotary(dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=4.0))

    def test_llama3(self):
        self.check_rotary(dict(rope_type="llama3", factor=4.0, original_max_position_embeddings=32,
                               low_freq_factor=1.0, high_freq_factor=4.0))

    def test_dynamic_up_to_its_length(self):
        self.check_rotary(dict(rope_type="dynamic", factor=2.0))

    def check_by_position(self, settings, threshold):
        """Beyond the threshold: as cached decoding, not as one call."""
        reference, ids, stepped = self.check_rotary(settings, step_by_step_logits)
        at_once = parity.reference_logits(reference, ids)
        self.assertGreater(parity.relative_difference(stepped, at_once), parity.TOLERANCE)
        before = slice(0, threshold)
        alone = parity.reference_logits(reference, ids[before])
        self.assert_parity(stepped[before], alone, "up to the threshold one call is the same")

    def test_longrope_beyond_its_length(self):
        pairs = self.base["hidden_size"] // self.base["num_attention_heads"] // 2
        self.check_by_position(dict(rope_type="longrope", factor=4.0, original_max_position_embeddings=32,
                                    short_factor=[1.0 + 0.1 * i for i in range(pairs)],
                                    long_factor=[2.0 + 0.5 * i for i in range(pairs)]), threshold=32)

    def test_dynamic_beyond_its_length(self):
        case = parity.Case(dict(rope_parameters=dict(rope_type="dynamic", rope_theta=1e3, factor=4.0),
                                num_hidden_layers=1, max_position_embeddings=24), tokens=60)
        reference, ids = self.save(case)
        # A fresh model a length: the embedding remembers the longest sequence that it saw.
        theirs = step_by_step_logits(reference, ids)
        for arm in ("teacher-forced", "stepwise"):
            ours = parity.replayeval_logits([self.folder], ids, *parity.ARMS[arm])[0]
            self.assert_parity(ours, theirs, f"dynamic beyond its length, {arm}")
        at_once = parity.reference_logits(type(reference).from_pretrained(self.folder, dtype=torch.float32).eval(), ids)
        self.assertGreater(parity.relative_difference(theirs, at_once), parity.TOLERANCE)


if __name__ == "__main__":
    unittest.main()
