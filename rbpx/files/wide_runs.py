"""What a request says of runs that have a column each in, each run with its columns and facts out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rbpx.errors import RbpxError
from rbpx.files.numbers import large_number

HOW: Final = "runs='{loss_nats: {COLUMN: 60M, OTHER: 1.2B}}', with the S of each"
_MORE: Final = "runs='{loss_nats: {NAME: {S: 60M, column: COLUMN, variant: muon}}}'"
_NAMES: Final = ("size", "revision", "variant")
_COUNTS: Final = ("training_seed", "unique_tokens", "tokens_per_step")
_POSITIVE: Final = ("S", "total_params")
_FIELDS: Final = {"S": "non_embedding_params"}


@dataclass
class WideRun:
    """One run of a table of steps.

    Attributes:
        columns: quantity -> its column in the file.
        facts: what is the same in all its rows, by field.
    """

    columns: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)


def read_wide_runs(runs: Any) -> dict[str, WideRun]:
    """Run -> its columns and facts, of quantity -> run -> S, or what is known of it.

    Raises:
        RbpxError: it is not such a mapping, a run has no S, or two of its facts differ.
    """
    if runs is None:
        return {}
    if not isinstance(runs, Mapping) or not runs:
        raise RbpxError(f"runs={runs} is not a mapping; write {HOW}")
    read: dict[str, WideRun] = {}
    for quantity, named in runs.items():
        if not isinstance(quantity, str) or not isinstance(named, Mapping) or not named:
            raise RbpxError(f"runs: {quantity}: {named} is not a quantity with the runs that have it; write {HOW}")
        for name, told in named.items():
            where = f"runs: {quantity}: {name}"
            known = dict(told) if isinstance(told, Mapping) else {"S": told}
            run = read.setdefault(str(name), WideRun())
            run.columns[quantity] = str(known.pop("column", name))
            for key, value in known.items():
                fact = _fact(where, key, value)
                if run.facts.setdefault(_FIELDS.get(key, key), fact) != fact:
                    raise RbpxError(f"{where}: {key} is {value}, but another under another quantity; give one of them")
    for name, run in read.items():
        if "non_embedding_params" not in run.facts:
            raise RbpxError(f"runs: {name} has no S, its parameters without embeddings; write {HOW}")
    return read


def _fact(where: str, key: Any, value: Any) -> Any:
    if key in _NAMES:
        if not isinstance(value, str):
            raise RbpxError(f"{where}: {key}: {value} is not a name; quote it to keep it as typed")
        return value
    exact = large_number(value)
    if key in _POSITIVE and exact is not None and 0 < exact < 10**300:
        return float(exact)
    if key in _COUNTS and exact is not None and 0 <= exact < 2**63 and exact == exact.to_integral_value():
        return int(exact)
    if key in (*_POSITIVE, *_COUNTS):
        raise RbpxError(
            f"{where}: {key} is {value}; give a {'' if key in _POSITIVE else 'whole '}number, as 60M or 6e7"
        )
    known = ", ".join(("column", *_POSITIVE, *_NAMES, *_COUNTS))
    raise RbpxError(f"{where}: {key} is not known of a run; known: {known}, as in {_MORE}")
