"""What an audit finds of a store, and the tokens of runs that were measured twice."""

from pathlib import Path
from typing import Any

from rbpx.questions import render
from rbpx.questions.registry import question
from rbpx.store.messages import collected_messages
from tests.support.asking import Asked, as_json, request
from tests.support.stores import runs_by_size


def audit(store: Path, **keys: Any) -> tuple[Asked, list[str]]:
    """What an audit finds, and the runs that failed, each with its reason."""
    asked = request(store, "audit", **{"resamples": 50, "dtype": None, **keys})
    with collected_messages() as messages:
        remeasure = question("audit").remeasure
        results, measured = remeasure(asked)
    rows = render.rows_of(results)
    failed = [f"{each.cell}: {each.error}" for each in measured.failures]
    return Asked("audit", as_json(rows), results, list(messages)), failed


def pairs_by_hand(store: Path, size: str) -> list[tuple[Any, Any]]:
    """(bfloat16, float32) rows (greater, ties, logprob) of the tokens of both runs of a size."""
    sides = []
    for dtype in ("bfloat16", "float32"):
        run = runs_by_size(store, dtype)[size]
        names = ("doc_id", "position", "token_id", "greater", "ties", "logprob")
        tokens = zip(*(run[name].tolist() for name in names), strict=True)
        sides.append({row[:3]: row[3:] for row in tokens})
    assert sides[0].keys() == sides[1].keys()
    return [(sides[0][token], sides[1][token]) for token in sides[0]]
