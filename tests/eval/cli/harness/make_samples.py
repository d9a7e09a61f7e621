#!/usr/bin/env python3
"""Write tests/eval/cli/harness/CHECKPOINT: what lm-evaluation-harness 0.4.13 makes of the bundled checkpoints, and of the
random ones of random_checkpoints.py.

    python tests/eval/cli/harness/make_samples.py [CHECKPOINT...]
        in an environment with lm_eval[hf]==0.4.13, torch==2.11.0 and transformers==5.17.0; default: all of them

The harness itself is no part of the tests' environment: it would add 48 wheels of 620 MB, and minutes to each run.

Its `hf` model, on the CPU in float32, runs one task of each request type without generation, few-shot variants included,
through `lm_eval run` as the how-to of configs/tasks.md shows. The documents are made up here, or cut from the READMEs of
the checkpoints. Rows keep what the harness wrote; of the results file, what decides how they are read and scored.
"""

import pathlib
import sys
import tempfile

import harness_run
import random_checkpoints

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[3]
BUNDLED = ("tiny-nemotron-h", "tiny-qwen3-next")
KEPT_CONFIG = ("task", "output_type", "metric_list", "filter_list", "doc_to_choice", "doc_to_target", "target_delimiter",
               "fewshot_delimiter", "repeats", "num_fewshot")

ANIMALS = ["dog", "horse", "whale", "eagle", "salmon", "spider", "frog", "snake", "cow", "owl", "bee", "shark"]
KINDS = ["mammal", "mammal", "mammal", "bird", "fish", "arachnid", "amphibian", "reptile", "mammal", "bird", "insect", "fish"]
CHOICES = [{"question": f"What kind of animal is the {animal}?", "label": i % 4,
            "options": [kind if j == i % 4 else ["plant of the sea", "stone", "Gemüse 🙂", "river in the north"][j]
                        for j in range(4)]}
           for i, (animal, kind) in enumerate(zip(ANIMALS, KINDS, strict=True))]
CHOICES.append({"question": "Equal choices", "options": ["same", "same", "other", "same"], "label": 1})
CLOZES = [{"text": text, "last": last} for text, last in [
    ("The capital of France is", " Paris"), ("Once upon a", " time"), ("the United States of", " America"),
    ("He was born in New", " York"), ("in the nineteenth", " century"), ("The sun rises in the east and sets in the", " west"),
    ("at the end of the", " day"), ("between the two", " sides"), ("as well", " as"), ("in order", " to"),
    ("ends in newlines\n\n", "Then more"), ("geschützt\u00a0", "und Ende"), ("one of the", " most"), ("", "nothing before"),
]]


def texts():
    for name in BUNDLED:
        text = (ROOT / "checkpoints" / name / "README.md").read_text(encoding="utf-8")
        words = text.split()
        for begin in range(0, 360, 90):
            yield {"page": " ".join(words[begin : begin + 90])}
    yield {"page": "Größe, naïveté, 東京タワー, 🙂🙃.\u2028A line\tand a tab."}


def task_configs(folder):
    def task(name, rows, **config):
        return harness_run.jsonl_task(folder, name, rows, **config)

    choice = {"output_type": "multiple_choice", "doc_to_text": "Q: {{question}}\nA:", "doc_to_choice": "{{options}}",
              "doc_to_target": "label",
              "metric_list": [{"metric": name} for name in ("acc", "acc_norm", "acc_bytes", "acc_mutual_info")]}
    cloze = {"output_type": "loglikelihood", "doc_to_text": "{{text}}", "doc_to_target": "{{last}}",
             "target_delimiter": "", "metric_list": [{"metric": "perplexity"}, {"metric": "acc"}]}
    yield task("animals", CHOICES, **choice)
    yield task("animals_few_shot", CHOICES, num_fewshot=3, description="Choose.\n\n", **choice)
    yield task("cloze", CLOZES, **cloze)
    yield task("cloze_few_shot", CLOZES, num_fewshot=2, **cloze)
    yield task("pages", list(texts()), output_type="loglikelihood_rolling", doc_to_text="", doc_to_target="{{page}}",
               metric_list=[{"metric": name} for name in ("word_perplexity", "byte_perplexity", "bits_per_byte")])


def main():
    for name in sys.argv[1:] or (*BUNDLED, *random_checkpoints.MODELS):
        with tempfile.TemporaryDirectory(prefix="replayeval-harness-") as scratch:
            folder = pathlib.Path(scratch)
            if name in BUNDLED:
                checkpoint = ROOT / "checkpoints" / name
            else:
                checkpoint = random_checkpoints.make(name, folder / "checkpoint")
            # Its cache reads a continuation at the wrong place where another request has the same tokens.
            harness_run.run(checkpoint, task_configs(folder), folder, ",logits_cache=False")
            harness_run.keep(folder, HERE / name, KEPT_CONFIG)
            if name not in BUNDLED:
                (HERE / name / "weights.sha256").write_text(random_checkpoints.digest(checkpoint) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
