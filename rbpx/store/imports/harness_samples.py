"""Reads the samples that lm-evaluation-harness logs of one task, and scores the model on its items.

`--log_samples` writes a row for each item: the requests (context and continuation of each choice), the summed nats of
each and whether it is greedy, and the item's metrics; so they become an observation, never rows of `tokens`. Format of
0.4.13 (loggers/evaluation_tracker.py).
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rbpx.errors import RbpxError, number_of
from rbpx.files.cells import quoted
from rbpx.files.rows import Row, read_rows
from rbpx.spelling import typed
from rbpx.store.imports.cells import CellError
from rbpx.store.imports.faults import refuse

__all__ = ["SCORES", "Scored", "is_of_harness", "read_samples"]

SCORES: Final = ("accuracy", "accuracy_stderr", "bits_per_byte", "bits_per_byte_stderr")
_METRICS: Final = ("acc", "exact_match")  # the accuracy where none is named: the first that was logged
_NAME: Final = re.compile(r"samples_(.+)_\d{4}-\d\d-\d\dT[\d.-]+")


@dataclass(frozen=True)
class Scored:
    """The scores of a model in a file of samples.

    Attributes:
        task: from the name of the file.
        accuracy_stderr: as the harness computes it (n - 1).
        bits_per_byte: of the right targets, all their bits over all their bytes.
    """

    sha256: str
    task: str | None
    n_items: int
    metric: str | None
    accuracy: float | None
    accuracy_stderr: float | None
    bits_per_byte: float | None
    bits_per_byte_stderr: float | None


def is_of_harness(names: Sequence[str]) -> bool:
    """Whether these column names are those of samples of lm-evaluation-harness."""
    return {"arguments", "filtered_resps"} <= {name.partition(".")[0] for name in names}


def read_samples(path: Path, metric: str | None = None, filter_name: str | None = None) -> Scored:
    """The scores in a file samples_TASK_TIME.jsonl; the accuracy is `metric`, by default acc, else exact_match.

    Raises:
        RbpxError: it is no such file, it has several filters and none of them is named, an item is there twice, or a
            value of the metric is no share.
    """
    read = read_rows(path)
    if not read.rows or not is_of_harness(read.columns):
        raise RbpxError(f"{path} has no samples of lm-evaluation-harness; give a samples_*.jsonl of --log_samples")
    rows, faults, seen = _of_filter(read.rows, filter_name), list[str](), set[Any]()
    named, shares, targets = _metric(rows[0], metric), list[float](), list[tuple[float, int] | None]()
    for row in rows:
        item = row.values.get("doc_id")
        try:
            if not isinstance(item, int):
                raise CellError(f"doc_id {quoted(item)} is no number of an item; log the samples again")
            if item in seen:
                raise CellError(f"item {item} appears twice; give the samples of one evaluation")
            seen.add(item)
            shares += [] if named is None else [_share(row, named)]
            targets.append(_right_target(row))
        except CellError as problem:
            faults.append(f"{row.place}: {problem}")
    refuse(faults, len(faults), path, otherwise="")
    known = [(nats / math.log(2), n_bytes) for nats, n_bytes in filter(None, targets)]
    accuracy = _ratio([(share, 1) for share in shares]) if shares else (None, None)
    bits = _ratio(known) if len(known) == len(targets) else (None, None)
    if not shares and bits[0] is None:
        named_by = typed(columns={"accuracy": "METRIC"})
        raise RbpxError(f"{path} logs neither an accuracy nor a likelihood; name a metric with {named_by}")
    found = _NAME.match(path.name)
    return Scored(read.sha256, None if found is None else found[1], len(rows), named, *accuracy, *bits)


def _of_filter(rows: Sequence[Row], asked: str | None) -> list[Row]:
    of: dict[str, list[Row]] = {}
    for row in rows:
        of.setdefault(str(row.values.get("filter")), []).append(row)
    if asked in of or (asked is None and len(of) == 1):
        return of[asked or next(iter(of))]
    no = "" if asked is None else f"no answers of filter {asked}, but "
    has = f"{no}the answers of {number_of(len(of), 'filter')} ({', '.join(of)})"
    raise RbpxError(f"{rows[0].path} has {has}; take those of one with {typed(filter=next(iter(of)))}")


def _metric(row: Row, asked: str | None) -> str | None:
    metrics = row.values.get("metrics")
    logged = [str(name) for name in metrics] if isinstance(metrics, list) else []
    if asked is not None and asked not in logged:
        raise RbpxError(f"{row.path} logs no metric {asked}; it has: {', '.join(logged) or 'none'}")
    return asked or next((name for name in _METRICS if name in logged), None)


def _share(row: Row, metric: str) -> float:
    value = row.values.get(metric)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise CellError(f"{metric} {quoted(value)} is not a share in [0, 1]; name another metric")
    return float(value)


def _right_target(row: Row) -> tuple[float, int] | None:
    requests, answers = row.values.get("arguments"), row.values.get("filtered_resps")
    each = [request for request in requests.values() if isinstance(request, dict)] if isinstance(requests, dict) else []
    texts = [[str(part) for part in request.values()] for request in each]
    if not isinstance(answers, list) or len(texts) != len(answers) or not texts or not texts[0]:
        raise CellError("its arguments and filtered_resps do not belong together; log the samples again")
    which = 0 if len(answers) == 1 else _right_choice(row, [text[-1] for text in texts])
    if which is None:
        return None
    answer, (*context, target) = answers[which], texts[which]
    is_pair = isinstance(answer, list) and len(answer) == 2
    if (is_pair, len(context)) not in ((True, 1), (False, 0)) or (isinstance(answer, list) and not is_pair):
        return None
    spaces = context[0][len(context[0].rstrip()) :] if context else ""  # which the harness moves to the target
    loglikelihood, target = (answer[0] if is_pair else answer), spaces + target
    try:
        nats = -float(loglikelihood)
    except (TypeError, ValueError, OverflowError):
        nats = math.nan
    if not -1e-3 <= nats < 1e30:
        raise CellError(f"{quoted(loglikelihood)} is not the logarithm of a probability")
    n_bytes = len(target.encode("utf-8", "surrogatepass"))
    return (nats, n_bytes) if n_bytes else None


def _right_choice(row: Row, continuations: Sequence[str]) -> int | None:
    target = str(row.values.get("target"))
    if re.fullmatch(r"[0-9]{1,9}", target) and int(target) < len(continuations):
        return int(target)
    same = [at for at, text in enumerate(continuations) if text.strip() == target.strip()]
    return same[0] if len(same) == 1 else None


def _ratio(items: Sequence[tuple[float, float]]) -> tuple[float, float | None]:
    """The ratio of two sums over items, and its standard error (of a ratio of means, to first order)."""
    n, of_n = len(items), math.fsum(of for _, of in items)
    ratio = math.fsum(value for value, _ in items) / of_n
    spread = math.fsum((value - ratio * of) ** 2 for value, of in items)
    return ratio, math.sqrt(spread / (n - 1) / n) / (of_n / n) if n > 1 else None
