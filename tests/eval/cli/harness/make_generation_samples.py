#!/usr/bin/env python3
"""Write tests/eval/cli/harness/generation/CHECKPOINT: what lm-evaluation-harness 0.4.13 lets the bundled checkpoints write.

    python tests/eval/cli/harness/make_generation_samples.py      in the environment of make_samples.py

Its `hf` model, on the CPU in float32, runs generate_until tasks greedily: facts to recall, without and with examples,
whose answers end at a stop string; and longer texts, which end at max_gen_toks or with the document.
"""

import pathlib
import tempfile

import harness_run

HERE = pathlib.Path(__file__).resolve().parent / "generation"
ROOT = HERE.parents[4]
CHECKPOINTS = ("tiny-nemotron-h", "tiny-qwen3-next")
KEPT_CONFIG = ("task", "output_type", "metric_list", "filter_list", "doc_to_target", "repeats", "num_fewshot")
FACTS = [("Marta Quill", "lives in", "Where does Marta Quill live?", "Amber Ferry"),
         ("Oskar Lind", "works as", "What does Oskar Lind do?", "a mason"),
         ("Ines Vale", "lives in", "Where does Ines Vale live?", "Copper Bridge"),
         ("Pavel Stone", "was born in", "Where was Pavel Stone born?", "New York"),
         ("Ruth Amber", "keeps", "What does Ruth Amber keep?", "seven bees"),
         ("Jonas Reed", "lives in", "Where does Jonas Reed live?", "Silver Harbour")]
FILLER = "The road runs along the river for some miles. In the winter there is little to see."
BEGINNINGS = ["The history of the town begins with", "Anarchism is a political philosophy that", "A noun that means",
              "Law: the first rule of", "The river carries what the rain", "Größe ist", "He said that the most of",
              "1. The first\n2. The second\n3."]


def task_configs(folder):
    def task(name, rows, **config):
        return harness_run.jsonl_task(folder, name, rows, output_type="generate_until", **config)

    told = [f"{who} {what} {value}." for who, what, _, value in FACTS]
    facts = [{"facts": f"{' '.join(told)} {FILLER}", "question": question, "begin": f"{who} {what}", "value": value}
             for who, what, question, value in FACTS]
    exact = {"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}
    words = {"function": "regex", "regex_pattern": "(\\S.*\\S)"}
    yield task("facts", facts, doc_to_text="{{facts}} {{question}} {{begin}}", doc_to_target="{{value}}",
               generation_kwargs={"until": [".", "\n"], "max_gen_toks": 16, "do_sample": False},
               metric_list=[{**exact, "ignore_case": True, "ignore_punctuation": True}],
               filter_list=[{"name": "strict", "filter": [words, {"function": "take_first"}]},
                            {"name": "whole", "filter": [{"function": "lowercase"}, {"function": "take_first"}]}])
    yield task("facts_few_shot", facts, num_fewshot=2, description=told[0] + "\n\n",
               doc_to_text="{{facts}} {{question}}", doc_to_target="{{begin}} {{value}}.",
               generation_kwargs={"until": ["\n\n"], "max_gen_toks": 20}, metric_list=[exact],
               filter_list=[{"name": "strict", "filter": [words, {"function": "take_first"}]}])
    yield task("texts", [{"text": text} for text in BEGINNINGS], doc_to_text="{{text}}", doc_to_target="",
               generation_kwargs={"until": ["\n\n\n"], "max_gen_toks": 64, "do_sample": False, "temperature": 0.0},
               metric_list=[exact])


def main():
    for checkpoint in CHECKPOINTS:
        with tempfile.TemporaryDirectory(prefix="replayeval-harness-") as scratch:
            folder = pathlib.Path(scratch)
            harness_run.run(ROOT / "checkpoints" / checkpoint, task_configs(folder), folder)
            harness_run.keep(folder, HERE / checkpoint, KEPT_CONFIG)


if __name__ == "__main__":
    main()
