"""Checks rows of other people's results and turns them into observations of RBP_k and p_{N,k}, in our units."""

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from rbpx.config.imports import ImportConfig
from rbpx.errors import RbpxError
from rbpx.files.columns import Columns
from rbpx.files.digest import digest
from rbpx.files.numbers import as_written, is_empty, number, whole_number
from rbpx.files.rows import Row
from rbpx.ties import Ties

_LARGEST = {"k": 2**31 - 1, "n": 2**31 - 1}  # their type in the relation


@dataclass(frozen=True)
class Observation:
    """One share of hits of one model on one text, a row of `observations`; None where the source does not say.

    Attributes:
        non_embedding_params: S.
        k: a hit is a rank of at most k.
        n: length of the windows that must consist of hits; 1 is RBP_k.
        ties: tie rule of the ranks.
        rbp: share of tokens, or of windows, in [0, 1].
        n_tokens: tokens, or windows, that the share is of.
        cross_entropy_nats: mean over the same tokens, nats.
    """

    source: str
    family: str
    size: str
    model: str | None
    revision: str | None
    non_embedding_params: int
    dataset: str
    text_hash: str | None
    protocol: str | None
    dtype: str | None
    k: int
    n: int
    ties: str
    rbp: float
    n_tokens: int | None
    cross_entropy_nats: float | None

    @property
    def run(self) -> tuple[str | None, ...]:
        """The names that identify the run it belongs to."""
        names = (self.source, self.family, self.size, self.revision, self.dataset)
        return (*names, self.text_hash, self.protocol, self.dtype)

    @property
    def identity(self) -> tuple[Any, ...]:
        """What distinguishes it from every other observation."""
        return (*self.run, self.k, self.n, self.ties)


def run_ids(observations: Iterable[Observation]) -> dict[tuple[str | None, ...], str]:
    """A run_id for each imported run: a digest of its names and of its values, whatever their order."""
    members: dict[tuple[str | None, ...], list[Any]] = {}
    for one in observations:
        members.setdefault(one.run, []).append(one)
    return {run: digest([list(run), sorted(digest(astuple(one)) for one in ones)]) for run, ones in members.items()}


def read_observations(rows: Iterable[Row], columns: Columns, config: ImportConfig) -> list[tuple[str, Observation]]:
    """Each observation with the place of its row, in order.

    Raises:
        RbpxError: a value is missing, is not a number, is out of its range, or differs from what the request says.
    """
    return [(row.place, one) for row in rows for one in _observations(row, columns, config)]


def _observations(row: Row, columns: Columns, config: ImportConfig) -> list[Observation]:
    """One observation, or one for each filled column of RBP at one k."""
    value = {field: row.values.get(column) for field, column in columns.named.items()}
    model = _name(row, value, "model")
    if _name(row, value, "ties") not in (None, *Ties):
        raise RbpxError(f"{row.place}: ties is {_name(row, value, 'ties')!r}; known: {', '.join(Ties)}")
    entropy = _share_or_nats(row, value.get("cross_entropy_nats"), "cross_entropy_nats")
    common: dict[str, Any] = {
        "source": config.source,
        "family": _name_or_default(row, value, "family", config.family),
        "size": _name(row, value, "size") or _size_of(row, model),
        "model": model,
        "revision": _name_or_default(row, value, "revision", config.revision, needed=False),
        "non_embedding_params": _whole(row, value.get("non_embedding_params"), "non_embedding_params"),
        "dataset": _name_or_default(row, value, "dataset", config.dataset),
        "text_hash": _name(row, value, "text_hash"),
        "protocol": _name_or_default(row, value, "protocol", config.protocol, needed=False),
        "dtype": _name_or_default(row, value, "dtype", config.dtype, needed=False),
        "n": 1 if is_empty(value.get("n")) else _whole(row, value["n"], "n"),
        "ties": _name_or_default(row, value, "ties", None if config.ties is None else config.ties.value),
        "n_tokens": None if is_empty(value.get("n_tokens")) else _whole(row, value["n_tokens"], "n_tokens"),
        "cross_entropy_nats": entropy,
    }
    shares = {k: row.values.get(column) for k, column in columns.wide.items()}
    if not shares:
        shares = {_whole(row, value.get("k"), "k"): value.get("rbp")}
    filled = {k: _share_or_nats(row, share, "rbp") for k, share in shares.items() if not is_empty(share)}
    if not filled:
        raise RbpxError(f"{row.place}: rbp is empty; give a share in [0, 1], or leave the row out")
    return [Observation(**common, k=k, rbp=rbp) for k, rbp in filled.items()]  # type: ignore[arg-type]


def _name(row: Row, value: dict[str, Any], field: str) -> str | None:
    cell = value.get(field)
    if is_empty(cell):
        return None
    if isinstance(cell, bool) or not isinstance(cell, str | int):
        raise RbpxError(f"{row.place}: {field} is {cell!r}, but a name is expected; write it as text")
    return str(cell).strip()


def _name_or_default(row: Row, value: dict[str, Any], field: str, default: str | None, needed: bool = True) -> Any:
    """A name from the row, or the one given for all rows; they must not differ."""
    name = _name(row, value, field)
    if name is not None and default is not None and name != default:
        raise RbpxError(f"{row.place}: {field} is {name!r}, but {field}={default} was given; leave one of them out")
    if name is None and default is None and needed:
        rule = "pessimistic, optimistic or mid" if field == "ties" else "NAME"
        raise RbpxError(f"{row.place}: the {field} is missing; add a column {field}, or give {field}={rule}")
    return default if name is None else name


def _size_of(row: Row, model: str | None) -> str:
    size = "" if model is None else model.rstrip("/").split("/")[-1]
    if not size:
        raise RbpxError(
            f"{row.place}: the size is missing; add a column size, or a column model, whose last part is then the size"
        )
    return size


_WHOLE = {
    "non_embedding_params": "a positive whole number is expected: give parameters, not millions",
    "k": "a rank is a whole number from 1",
    "n": "the length of a window is a whole number from 1",
    "n_tokens": "a count is a whole number from 1, or empty",
}


def _whole(row: Row, value: Any, field: str) -> int:
    return whole_number(row, field, value, _WHOLE[field], most=_LARGEST.get(field, 2**63 - 1))


def _share_or_nats(row: Row, value: Any, field: str) -> float | None:
    """A share in [0, 1], or nats from 0; None where it is empty."""
    if is_empty(value):
        return None
    exact = number(value)
    if field == "rbp" and (exact is None or not 0 <= exact <= 1):
        raise RbpxError(f"{row.place}: rbp is {as_written(value)}; give shares in [0, 1], not percent")
    if exact is None or not 0 <= exact < 10**300:
        raise RbpxError(
            f"{row.place}: {field} is {as_written(value)}; give nats a token, finite and 0 or more, or nothing"
        )
    return float(exact)


def merge(read: Sequence[tuple[str, Observation]], stored: Iterable[Observation]) -> list[Observation]:
    """The observations that are not among those stored already, each once.

    Raises:
        RbpxError: two observations with the same identity differ in a value, or two sizes with the same name in S.
    """
    by_identity = {one.identity: (one, "the store") for one in stored}
    params = {(one.family, one.size): (one.non_embedding_params, "the store") for one, _ in by_identity.values()}
    new = []
    for place, one in read:
        other, where = by_identity.setdefault(one.identity, (one, place))
        if other != one:
            name = next(n for n in vars(one) if getattr(one, n) != getattr(other, n))
            raise RbpxError(
                f"{place}: {name} of {one.family} {one.size} on {one.dataset}, k={one.k}, n={one.n} is "
                f"{as_written(getattr(one, name))}, but {as_written(getattr(other, name))} in {where}; "
                f"keep one of them, or name another source than {one.source}"
            )
        size, s = (one.family, one.size), one.non_embedding_params
        s_before, where_before = params.setdefault(size, (s, place))
        if s != s_before:
            raise RbpxError(
                f"{place}: non_embedding_params of {one.family} {one.size} is {s:,}, but {s_before:,} in "
                f"{where_before}; a size has one S, so give the sizes different names or correct it"
            )
        if where == place and other is one:
            new.append(one)
    return new
