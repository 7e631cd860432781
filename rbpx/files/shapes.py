"""Makes rows of JSON that is one object.

Known are results_*.json of lm-evaluation-harness (0.4.13, loggers/evaluation_tracker.py), trainer_state.json of
transformers, and what pandas writes with orient='split' and orient='columns'.
"""

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any, Final

_Record = dict[str, Any]
_ACCURACIES: Final = ("acc", "exact_match")  # the accuracy of a task: the first that it has
_PROTOCOL: Final = "harness"


def records_of(values: _Record) -> list[_Record] | None:
    """The rows that an object of a known tool stands for; None for any other."""
    made = next((make(values) for is_one, make in _SHAPES if is_one(values)), None)
    return None if made is None else [dict(row) for row in made]


def _has(kinds: Mapping[str, type]) -> Callable[[_Record], bool]:
    return lambda values: all(isinstance(values.get(name), kind) for name, kind in kinds.items())


def _of_results(values: _Record) -> list[_Record]:
    about, n_items, n_shot = (values.get(name) or {} for name in ("config", "n-samples", "n-shot"))
    model = {"model": values.get("model_name"), "total_params": about.get("model_num_parameters")}
    rows = []
    for task, scores in values["results"].items():
        row = {"dataset": task, "protocol": _PROTOCOL} | {name: of for name, of in model.items() if of is not None}
        items = n_items.get(task)
        row |= {"n_items": items.get("effective") if isinstance(items, dict) else items, "n_shot": n_shot.get(task)}
        row |= {_metric(name): score for name, score in scores.items() if name != "alias"}
        of = next((name for name in _ACCURACIES if name in row), None)
        if of is not None:
            row |= {"accuracy": row[of], "accuracy_stderr": row.get(f"{of}_stderr")}
        rows.append(row)
    return rows


def _metric(name: str) -> str:
    """`acc_stderr,none` is acc_stderr, and `exact_match_stderr,strict-match` exact_match,strict-match_stderr."""
    of, _, by = name.partition(",")
    plain = of.removesuffix("_stderr")
    return (plain if by in ("", "none") else f"{plain},{by}") + of[len(plain) :]


def _of_columns(values: _Record) -> list[_Record]:
    keys = dict.fromkeys(chain(*values.values()))
    return [{name: cells.get(key) for name, cells in values.items()} for key in keys]


def _are_objects(cells: Any) -> bool:
    return isinstance(cells, dict) and bool(cells) and all(isinstance(cell, dict) for cell in cells.values())


def _are_columns(values: _Record) -> bool:
    return _are_objects(values) and all(cells and all(map(str.isdecimal, cells)) for cells in values.values())


_SHAPES: Final = (
    (lambda values: _are_objects(values.get("results")), _of_results),
    (_has({"log_history": list}), lambda values: values["log_history"]),
    (
        _has({"columns": list, "data": list}),
        lambda values: [dict(zip(values["columns"], row, strict=True)) for row in values["data"]],
    ),
    (_are_columns, _of_columns),
)
