#!/usr/bin/env python3
"""Write tests/datasets/tasks/data: samples, results and token ids as lm-evaluation-harness 0.4.13 makes them.

    python tests/datasets/tasks/make_samples.py        in an environment with lm_eval==0.4.13, torch and transformers

Tasks and documents are made up here. A model that answers by hashing its question stands in for a real one, so that the
files are the same every time. Token ids come from the harness's own `hf` model class with the tokenizers of checkpoints/.
"""

import hashlib
import json
import os
import pathlib
import shutil
import tempfile

os.environ["HF_HUB_OFFLINE"] = os.environ["HF_DATASETS_OFFLINE"] = "1"
os.environ["DISABLE_MULTIPROC"] = "1"

import tokenizers  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
import yaml  # noqa: E402
from lm_eval.api.instance import Instance  # noqa: E402
from lm_eval.api.model import LM, TemplateLM  # noqa: E402
from lm_eval.evaluator import simple_evaluate  # noqa: E402
from lm_eval.loggers import EvaluationTracker  # noqa: E402
from lm_eval.models.huggingface import HFLM  # noqa: E402
from lm_eval.tasks import TaskManager  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
DATA = pathlib.Path(__file__).resolve().parent / "data"
BOOTSTRAP_ITERATIONS = 2000
DATE = "2026-01-01T00-00-00.000000"

CHOICES = [
    {"question": "The sky on a clear day is", "options": ["blue", "green as grass", "a colour", "none"], "label": 0},
    {"question": "Zwei und zwei sind", "options": ["drei", "vier", "fünf", "zweiundzwanzig"], "label": 1},
    {"question": "水は何度で沸騰しますか？", "options": ["百度", "零度", "千度", "五十度くらい"], "label": 0},
    {"question": "Ice is", "options": ["hot", "cold", "cold", "🙂 both"], "label": 3},
    {"question": "A \"quoted\" word and a \\ backslash:", "options": ["yes", "no", "perhaps", "tab\there"], "label": 2},
    {"question": "Never right", "options": ["a", "b", "c", "d"], "label": 3},
    {"question": "Equal choices", "options": ["same", "same", "same", "same"], "label": 0},
]
PAIRS = [{"premise": f"{a} lies in {b}.", "answer": "yes" if right else "no", "group": i % 3}
         for i, (a, b, right) in enumerate([("Rome", "Italy", True), ("Paris", "Spain", False), ("Łódź", "Polska", True),
                                            ("Kyoto", "Japan", True), ("Lima", "Chile", False), ("Oslo", "Peru", False),
                                            ("Bern", "Switzerland", True), ("Kairo", "Ägypten", True)])]
BLANKS = [
    {"option1": "the trophy", "option2": "the suitcase", "sentence": "It does not fit into", "end": "is too large.",
     "answer": 0},
    {"option1": "Ann", "option2": "Bea", "sentence": "Ann thanked", "end": "had helped her.", "answer": 1},
    {"option1": "der Mann", "option2": "die Frau", "sentence": "Das Kind sah, dass", "end": "müde war.", "answer": 1},
]
CLOZES = [
    {"text": "The capital of France is", "last": " Paris"},
    {"text": "Once upon a", "last": " time"},
    {"text": "Ein Satz mit\u00a0geschütztem Leerzeichen\u00a0", "last": "und Ende"},
    {"text": "ends in newlines\n\n", "last": "Then more"},
    {"text": "U+3000 at the end\u3000", "last": "続き"},
    {"text": "", "last": "nothing before it"},
]
TEXTS = [
    {"page": "A short text.\nWith a second line,  two spaces\tand a tab."},
    {"page": "Line separators: \u2028 and \u2029, next line \u0085, and a unit separator \x1f too."},
    {"page": "Größe, naïveté, 東京タワー, 🙂🙃."},
    {"page": "word " * 60 + "end"},
    {"page": " "},
]
SUMS = [{"question": f"{a} + {b} = ?", "answer": f"It is {a + b}.\n#### {a + b}", "number": str(a + b)}
        for a, b in [(2, 3), (10, 20), (7, 8), (100, 23), (4, 4), (900, 99)]]
SEVERAL = [
    {"question": "Name a colour.", "answers": ["red", "Blue", "grün"], "value": "red"},
    {"question": "Name it's city.", "answers": ["it's İstanbul", "say \"Rom\"", "ΟΔΟΣ"], "value": "İstanbul"},
    {"question": "Name a number.", "answers": ["12"], "value": "12"},
]

# What the stand-in says, in turn.
ANSWERS = ["The answer is 5.\n#### 5", "#### 30", " 15 ", "I think 123, or #### 123", "#### 8\n#### 9", "No number", "red",
           "blue!", "GRÜN", "It's i\u0307stanbul.", "οδος", "Say \"rom\"", "12", "999", "The blue one"]


def task_configs(folder):
    def dataset(name, rows):
        path = folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        return {"dataset_path": "json", "dataset_kwargs": {"data_files": {"test": path.name, "train": path.name}},
                "test_split": "test", "fewshot_split": "train", "task": name}

    exact = {"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}
    yield {**dataset("letters_of_choice", CHOICES), "output_type": "multiple_choice", "num_fewshot": 2,
           "description": "Choose.\n\n", "doc_to_text": "Q: {{question}}\nA:", "doc_to_choice": "options",
           "doc_to_target": "label",
           "metric_list": [{"metric": name} for name in ("acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match",
                                                          "brier_score")]}
    yield {**dataset("yes_no", PAIRS), "output_type": "multiple_choice", "doc_to_text": "{{premise}} True?",
           "doc_to_choice": ["no", "yes"], "doc_to_target": "{{answer}}", "target_delimiter": "\n",
           "metric_list": [{"metric": name} for name in ("acc", "f1", "mcc")]}
    yield {**dataset("several_right", [{**row, "right": [row["label"], (row["label"] + 1) % 4]} for row in CHOICES]),
           "output_type": "multiple_choice", "doc_to_text": "question", "doc_to_choice": "{{options}}",
           "doc_to_target": "right", "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}]}
    yield {**dataset("fill_blank", BLANKS), "output_type": "multiple_choice", "doc_to_text": "{{answer}}",
           "doc_to_choice": "{{[sentence + ' ' + option1, sentence + ' ' + option2]}}", "doc_to_target": "{{end}}",
           "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}]}
    yield {**dataset("last_word", CLOZES), "output_type": "loglikelihood", "doc_to_text": "{{text}}",
           "doc_to_target": "{{last}}", "metric_list": [{"metric": "perplexity"}, {"metric": "acc"}]}
    yield {**dataset("whole_text", TEXTS), "output_type": "loglikelihood_rolling", "doc_to_text": "",
           "doc_to_target": "{{page}}",
           "metric_list": [{"metric": name} for name in ("word_perplexity", "byte_perplexity", "bits_per_byte")]}
    yield {**dataset("sums", SUMS), "output_type": "generate_until", "num_fewshot": 1, "repeats": 3,
           "doc_to_text": "Question: {{question}}\nAnswer:", "doc_to_target": "{{number}}",
           "generation_kwargs": {"until": ["Question:", "</s>"], "do_sample": False, "temperature": 0.0},
           "metric_list": [{**exact, "ignore_case": True, "ignore_punctuation": False,
                            "regexes_to_ignore": [",", "\\$", "\\.$"]}],
           "filter_list": [
               {"name": "strict-match", "filter": [{"function": "regex", "regex_pattern": "#### (\\-?[0-9\\.\\,]+)"},
                                                   {"function": "take_first"}]},
               {"name": "flexible-extract", "filter": [
                   {"function": "regex", "group_select": -1, "regex_pattern": "(-?[$0-9.,]{2,})|(-?[0-9]+)"},
                   {"function": "take_first"}]},
               {"name": "majority", "filter": [{"function": "remove_whitespace"}, {"function": "lowercase"},
                                               {"function": "majority_vote"}, {"function": "take_first"}]}]}
    yield {**dataset("sums_untaken", SUMS), "output_type": "generate_until", "repeats": 2, "doc_to_text": "{{question}}",
           "doc_to_target": "{{number}}", "generation_kwargs": {"until": [], "max_gen_toks": 5}, "metric_list": [exact],
           "filter_list": [{"name": "all", "filter": [{"function": "remove_whitespace"}]}]}
    yield {**dataset("any_answer", SEVERAL), "output_type": "generate_until", "doc_to_text": "{{question}}",
           "doc_to_target": "answers", "generation_kwargs": {"until": "\n\n", "max_tokens": 24, "temperature": 0.7,
                                                             "do_sample": True, "top_p": 0.9},
           "metric_list": [{**exact, "ignore_case": True, "ignore_punctuation": True}]}


class StandIn(LM):
    """Log-likelihoods are multiples of 1/8 or not, by the question's hash, so that some are equal."""

    def __init__(self):
        super().__init__()
        self.answered = 0

    def number(self, *texts):
        return int.from_bytes(hashlib.sha256("\0".join(texts).encode()).digest()[:4], "big")

    def loglikelihood(self, requests, disable_tqdm=False):
        numbers = [self.number(*request.args) for request in requests]
        return [(-(n % 64) / 8 if n % 3 else -(n % 99991) / 997, n % 5 == 0) for n in numbers]

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        return [-(self.number(*request.args) % 99991) / 97 for request in requests]

    def generate_until(self, requests, disable_tqdm=False):
        self.answered += len(requests)
        return [ANSWERS[i % len(ANSWERS)] for i in range(self.answered - len(requests), self.answered)]


def write_samples(folder):
    names = []
    os.chdir(folder)
    for config in task_configs(folder):
        (folder / f"{config['task']}.yaml").write_text(yaml.safe_dump(config, allow_unicode=True), encoding="utf-8")
        names.append(config["task"])
    tracker = EvaluationTracker(output_path=str(folder / "out"))
    results = simple_evaluate(model=StandIn(), tasks=names, log_samples=True, evaluation_tracker=tracker,
                              bootstrap_iters=BOOTSTRAP_ITERATIONS,
                              task_manager=TaskManager(include_path=str(folder), include_defaults=False))
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    for name in names:
        tracker.save_results_samples(task_name=name, samples=samples[name])
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir()
    for path in (folder / "out").rglob("samples_*.jsonl"):
        shutil.copy(path, DATA / f"{path.stem.rpartition('_')[0]}_{DATE}.jsonl")
    path, = (folder / "out").rglob("results_*.json")
    document = json.loads(path.read_text(encoding="utf-8"))
    kept = {key: document[key] for key in ("results", "configs", "n-samples", "higher_is_better")}
    for config in kept["configs"].values():
        config.pop("metadata", None)  # it names this folder
        config.pop("config_source", None)
    (DATA / f"results_{DATE}.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


class Tokenizing(HFLM):
    """The `hf` model's requests without the model: what would be run is noted instead."""

    AUTO_MODEL_CLASS = transformers.AutoModelForCausalLM

    def __init__(self, tokenizer, max_length, add_bos_token=None):
        TemplateLM.__init__(self)
        self.tokenizer, self._max_length, self.add_bos_token = tokenizer, max_length, add_bos_token
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token_id = 0
        self.custom_prefix_token_id = self.think_end_token = None
        self.backend, self.truncation, self.batch_size_per_gpu, self._device = "causal", False, 1, torch.device("cpu")
        self._rank, self._world_size, self.enable_thinking = 0, 1, None
        self.noted = []

    def _loglikelihood_tokens(self, requests, disable_tqdm=False, override_bs=None):
        for _, context, continuation in requests:
            fed = (context + continuation)[-(self.max_length + 1):]
            cut = min(len(continuation), self.max_length)
            self.noted.append([fed[:-cut], fed[-cut:]] if continuation else [context, []])
        return [(0.0, True)] * len(requests)

    def _model_generate(self, context, max_length, stop, **kwargs):
        self.noted.append([context[0].tolist(), max_length - context.shape[1], list(stop)])
        return context


PAIRS_OF_TEXTS = [
    ("The capital of France is", " Paris"), ("The capital of France is ", "Paris"), ("ends in newlines\n\n", "Then"),
    ("geschützt\u00a0", "und Ende"), ("U+3000\u3000", "続き"), ("unit\x1f", "separator"), ("", "nothing before it"),
    ("", "<s>begins with bos"), ("<s>begins with bos", " and goes on"), ("joined wor", "ds are one token"), ("1", "23"),
    ("東京", "タワー"), ("a  b  ", "  c"), ("long " * 30, "tail " * 3), ("short", " long" * 40), ("x</s>", "y"),
    ("two\n", "\nlines"), ("🙂", "🙃"),
]
ROLLING = ["A short text.", "word " * 60 + "end", "<s>with bos", "東京タワー🙂", "one", "\n"]
PROMPTS = ["Question: 2 + 3 = ?\nAnswer:", "long " * 40, "<s>with bos", "x"]


def write_tokenizer(folder):
    """Byte-level BPE whose files know <s> and </s> and add neither: the bundled tokenizers are sentencepiece's."""
    bpe = tokenizers.Tokenizer(tokenizers.models.BPE())
    bpe.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=400, special_tokens=["<s>", "</s>"], show_progress=False,
                                             initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    bpe.train_from_iterator([json.dumps(rows, ensure_ascii=False) for rows in (CHOICES, CLOZES, TEXTS, SUMS)], trainer)
    folder.mkdir()
    bpe.save(str(folder / "tokenizer.json"), pretty=False)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config) + "\n", encoding="utf-8")


def write_requests():
    write_tokenizer(DATA / "bpe")
    cases = []
    for name in ("tiny-nemotron-h", "tiny-qwen3-next", "bpe"):
        folder = DATA / name if name == "bpe" else ROOT / "checkpoints" / name
        for files_add_bos in (False, True):
            options = {"add_bos_token": True} if files_add_bos else {}
            for max_length in (16, 4096):
                def model(add_bos=None):
                    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **options)
                    return Tokenizing(tokenizer, max_length, add_bos)

                for add_bos in (None, False):
                    case = {"checkpoint": name, "files_add_bos": files_add_bos, "add_bos": add_bos,
                            "max_length": max_length, "pairs": [], "rolling": [], "generation": []}
                    for pair in PAIRS_OF_TEXTS:
                        lm = model(add_bos)
                        lm.loglikelihood([Instance("loglikelihood", {}, pair, 0)], disable_tqdm=True)
                        case["pairs"].append([*pair, *lm.noted[0]])
                    for text in ROLLING:
                        lm = model(add_bos)
                        lm.loglikelihood_rolling([Instance("loglikelihood_rolling", {}, (text,), 0)], disable_tqdm=True)
                        case["rolling"].append([text, lm.noted])
                    for prompt in PROMPTS:
                        lm = model(add_bos)
                        arguments = (prompt, {"until": ["\n\n", "Q:"], "max_gen_toks": 6})
                        lm.generate_until([Instance("generate_until", {}, arguments, 0)], disable_tqdm=True)
                        case["generation"].append([prompt, *lm.noted[0]])
                    cases.append(case)
    lines = ",\n".join(json.dumps(case, ensure_ascii=True) for case in cases)
    (DATA / "requests.json").write_text(f"[{lines}]\n", encoding="utf-8")


def main():
    with tempfile.TemporaryDirectory(prefix="replayeval-samples-") as folder:
        write_samples(pathlib.Path(folder))
    write_requests()


if __name__ == "__main__":
    main()
