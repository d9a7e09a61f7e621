"""A run of lm-evaluation-harness's `hf` model over tasks of one's own, on the CPU in float32, and what is kept of it."""

import json
import os
import shutil
import subprocess
import sys

import yaml

DATE = "2026-01-01T00-00-00.000000"


def jsonl_task(folder, name, rows, **config):
    """A task's configuration, its documents and examples in a file of `folder`."""
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return {"task": name, "dataset_path": "json", "test_split": "test", "fewshot_split": "train",
            "dataset_kwargs": {"data_files": {"test": str(path), "train": str(path)}}, **config}


def run(checkpoint, configs, folder, more_model_args=""):
    """Through `lm_eval run`, as the how-to of configs/tasks.md shows; its --output_path is `folder`/out."""
    names = []
    for config in configs:
        (folder / f"{config['task']}.yaml").write_text(yaml.safe_dump(config, allow_unicode=True), encoding="utf-8")
        names.append(config["task"])
    subprocess.run([sys.executable, "-m", "lm_eval", "run", "--model", "hf",
                    "--model_args", f"pretrained={checkpoint},dtype=float32{more_model_args}",
                    "--device", "cpu", "--batch_size", "1", "--include_path", folder, "--tasks", ",".join(names),
                    "--log_samples", "--output_path", folder / "out"],
                   check=True, env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1",
                                    "HF_HOME": str(folder / "home")})


def keep(folder, target, kept_config):
    """Writes `target` anew from what run() left in `folder`: samples as they are, results without what no test reads. Of
    each task's configuration the members `kept_config` stay; every file is of the same date."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in (folder / "out").rglob("samples_*.jsonl"):
        shutil.copy(path, target / f"{path.stem.rpartition('_')[0]}_{DATE}.jsonl")
    path, = (folder / "out").rglob("results_*.json")
    document = json.loads(path.read_text(encoding="utf-8"))
    kept = {"results": document["results"],
            "configs": {name: {key: config[key] for key in kept_config if key in config}
                        for name, config in document["configs"].items()}}
    (target / f"results_{DATE}.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
