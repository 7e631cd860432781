"""The names that columns of users' tables may have, in one table, and which field each column of a file holds."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rbpx.errors import RbpxError

# Field -> names of its column, the preferred one first; compared without regard to case.
ALIASES: dict[str, tuple[str, ...]] = {
    "family": ("family",),
    "size": ("size",),
    "model": ("model", "hub_id", "model_name"),
    "revision": ("revision",),
    "non_embedding_params": ("non_embedding_params", "s"),
    "dataset": ("dataset",),
    "text_hash": ("text_hash",),
    "protocol": ("protocol",),
    "dtype": ("dtype",),
    "k": ("k",),
    "n": ("n",),
    "ties": ("ties",),
    "rbp": ("rbp", "p_all_n_in_topk", "p_nk", "p"),
    "n_tokens": ("n_tokens",),
    "cross_entropy_nats": ("cross_entropy_nats", "mean_cross_entropy_nats", "ce", "cross_entropy"),
    "passed": ("passed", "pass", "n_passed", "correct"),
    "trials": ("trials", "n_trials", "n_sequences"),
    "group": ("group", "task", "task_id", "document", "doc_id"),
}
TRIAL_FIELDS = ("size", "model", "non_embedding_params", "n", "passed", "trials", "group", "k")
OBSERVATION_FIELDS = tuple(field for field in ALIASES if field not in ("passed", "trials", "group"))
_OF_WINDOWS = ("p_all_n_in_topk", "p_nk")
_WIDE = re.compile(r"rbp_([1-9]\d*)")  # rbp_10 holds RBP_10
_BITS = {"bit", "bits", "bpb", "bpc", "bpt"}
_OF_ENTROPY = {"ce", "crossentropy", "entropy", "loss", "nll", "per", "surprisal"}


@dataclass(frozen=True)
class Columns:
    """How the columns of a file are read.

    Attributes:
        named: field -> column.
        wide: k -> column of RBP_k; empty where `named` has rbp.
        ignored: columns that are not recognised.
    """

    named: dict[str, str]
    wide: dict[int, str]
    ignored: tuple[str, ...]

    @property
    def mapping(self) -> dict[str, str]:
        """Field, or rbp_K, -> column, for provenance."""
        return self.named | {f"rbp_{k}": column for k, column in self.wide.items()}


def named_columns(columns: Sequence[str], fields: Sequence[str]) -> dict[str, str]:
    """Field -> the column that has one of its names, for the fields that have such a column."""
    by_name = {_plain(column): column for column in columns}
    aliases = {field: next((alias for alias in ALIASES[field] if alias in by_name), None) for field in fields}
    return {field: by_name[alias] for field, alias in aliases.items() if alias is not None}


def match_columns(columns: Sequence[str], chosen: Mapping[str, str], file: str) -> Columns:
    """Which field each column of a file of observations holds: as the user chose, otherwise by its name.

    Args:
        columns: names of the columns, no two of which differ only in case.
        chosen: field (or rbp_K) -> column.
        file: the file, for errors.

    Raises:
        RbpxError: a choice of a field or column that does not exist, cross-entropy in bits, no RBP at all, or RBP both
            in one column and in a column for each k.
    """
    by_name = {_plain(column): column for column in columns}
    named: dict[str, str] = {}
    wide: dict[int, str] = {}
    for field, column in chosen.items():
        if _plain(column) not in by_name:
            raise RbpxError(f"columns: {file} has no column {column!r} for {field}; it has: {', '.join(columns)}")
        wide_field = _WIDE.fullmatch(field)
        if wide_field:
            wide[int(wide_field[1])] = by_name[_plain(column)]
        elif field in OBSERVATION_FIELDS:
            named[field] = by_name[_plain(column)]
        else:
            raise RbpxError(
                f"columns: {field} is not a field of an observation; known: {', '.join(OBSERVATION_FIELDS)}, rbp_K"
            )
    free = {name: column for name, column in by_name.items() if column not in (*named.values(), *wide.values())}
    for field, column in named_columns(list(free.values()), OBSERVATION_FIELDS).items():
        if field not in named and not (field == "rbp" and wide):
            named[field] = free.pop(_plain(column))
    if "rbp" not in chosen:
        wide |= {int(_plain(c)[4:]): free.pop(name) for name, c in list(free.items()) if _WIDE.fullmatch(name)}
    _check(named, wide, columns, free, file)
    return Columns(named, dict(sorted(wide.items())), tuple(free.values()))


def _check(
    named: Mapping[str, str], wide: Mapping[int, str], columns: Sequence[str], free: Mapping[str, str], file: str
) -> None:
    entropy = named.get("cross_entropy_nats")
    candidates = list(free.values()) if entropy is None else [entropy]
    bits = next((column for column in candidates if _in_bits(column)), None)
    if bits is not None:
        raise RbpxError(f"{file}: column {bits!r} is in bits; convert to nats (times ln 2 = 0.693147) and rename it")
    if "rbp" not in named and not wide:
        raise RbpxError(
            f"{file} has no column rbp, nor rbp_1, rbp_10, ...; it has: {', '.join(columns)}; "
            "name it with columns='{rbp: NAME}'"
        )
    if wide and ("rbp" in named or "k" in named):
        other = named.get("rbp", named.get("k"))
        raise RbpxError(
            f"{file} has both {next(iter(wide.values()))!r}, RBP at one k, and {other!r}; "
            f"leave one out, or choose with columns='{{rbp: NAME, k: NAME}}'"
        )
    if "rbp" in named and "k" not in named:
        raise RbpxError(f"{file} has no column k; it has: {', '.join(columns)}; name it with columns='{{k: NAME}}'")
    if _plain(named.get("rbp", "")) in _OF_WINDOWS and "n" not in named:
        raise RbpxError(
            f"{file}: column {named['rbp']!r} is a share of windows, but no column n gives their length; add it or "
            "name it with columns='{n: NAME}'"
        )


def _in_bits(column: str) -> bool:
    words = set(re.split(r"[\W_]+", _plain(column)))
    return bool(words & _BITS) and (len(words) == 1 or bool(words & _OF_ENTROPY))


def _plain(column: str) -> str:
    return column.strip().lower()
