"""Asks lm-evaluation-harness 0.4.13 about `harness_cases`, and keeps its answers in tests/measure/harness_answers.json.

Its softmax is asked for in float64: in float32, the default, torch's loses up to 1e-3 nats of a target of 50 tokens
where one of 50,000 logits stands out. How far its default answers are from these is kept too, as `rounding`.

Run it in an environment of its own, with torch and lm_eval==0.4.13 (extra `hf`) installed:

    python -m tests.support.harness_answers SHARED
"""

import json
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.support.harness_cases import CHOICES, PAIRS, TEMPLATE, TEXTS, TOKENIZER_OF, build_shape

ANSWERS = Path(__file__).resolve().parents[1] / "measure" / "harness_answers.json"


def main(shared: Path) -> None:
    """Write the answers of every shape."""
    from lm_eval import simple_evaluate
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    answers: dict[str, Any] = {"lm_eval": version("lm_eval"), "torch": version("torch")}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_tasks(folder)
        for arch in TOKENIZER_OF:
            model = build_shape(arch, shared / "data" / "tokenizers", folder / arch)
            of_softmax = {}
            for softmax_dtype in ("float64", "float32"):
                found = simple_evaluate(
                    model=HFLM(
                        pretrained=str(model), dtype="float32", device="cpu", batch_size=4, softmax_dtype=softmax_dtype
                    ),
                    tasks=["own_pairs", "own_choices", "own_texts"],
                    task_manager=TaskManager(include_path=str(folder / "tasks"), include_defaults=False),
                    bootstrap_iters=0,
                )
                of_softmax[softmax_dtype] = {
                    task: _answers(found, f"own_{task}") for task in ("pairs", "choices", "texts")
                }
            answers[arch] = of_softmax["float64"]
            for task, exact in answers[arch].items():
                pairs = zip(exact["answers"], of_softmax["float32"][task]["answers"], strict=True)
                exact["rounding"] = max(
                    abs(one[0] - other[0]) for a, b in pairs for one, other in zip(a, b, strict=True)
                )
    ANSWERS.write_text(json.dumps(answers, indent=1) + "\n")


def _write_tasks(folder: Path) -> None:
    rows: dict[str, list[dict[str, Any]]] = {
        "pairs": [{"context": context, "target": target} for _, context, target in PAIRS],
        "choices": [dict(row) for row in CHOICES],
        "texts": [{"text": text} for text in TEXTS],
    }
    tasks: dict[str, dict[str, Any]] = {
        "pairs": {
            "output_type": "loglikelihood",
            "doc_to_text": "{{context}}",
            "doc_to_target": "{{target}}",
            "target_delimiter": "",
            "metrics": ["perplexity", "acc"],
        },
        "choices": {
            "output_type": "multiple_choice",
            "doc_to_text": TEMPLATE.replace("{", "{{").replace("}", "}}"),
            "doc_to_target": "label",
            "doc_to_choice": "{{choices}}",
            "metrics": ["acc", "acc_norm"],
        },
        "texts": {
            "output_type": "loglikelihood_rolling",
            "doc_to_text": "",
            "doc_to_target": "{{text}}",
            "metrics": ["word_perplexity", "byte_perplexity", "bits_per_byte"],
        },
    }
    (folder / "tasks").mkdir()
    for name, task in tasks.items():
        data = folder / f"{name}.jsonl"
        data.write_text("".join(json.dumps(row) + "\n" for row in rows[name]), encoding="utf-8")
        metrics = task.pop("metrics")
        whole = {
            "task": f"own_{name}",
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": {"test": str(data)}},
            "test_split": "test",
            "metric_list": [{"metric": metric} for metric in metrics],
            **task,
        }
        (folder / "tasks" / f"{name}.yaml").write_text(json.dumps(whole))  # JSON is YAML


def _answers(found: dict[str, Any], task: str) -> dict[str, Any]:
    samples = sorted(found["samples"][task], key=lambda sample: int(sample["doc_id"]))
    results = {key.split(",")[0]: value for key, value in found["results"][task].items() if key.endswith(",none")}
    results = {key: value for key, value in results.items() if isinstance(value, float) and "stderr" not in key}
    return {"answers": [[list(_one(each)) for each in sample["resps"]] for sample in samples], "results": results}


def _one(response: Any) -> tuple[Any, ...]:
    first = response[0]
    return (float(first),) if isinstance(first, str | float) else (float(first[0]), str(first[1]) == "True")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
