"""Keys as Python has them in; the requests that the same keys make on a command line out."""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from itertools import product
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypedDict

from rbpx.analyses.registry import analysis
from rbpx.config.compose import compose, names_dataset
from rbpx.config.overrides import quoted
from rbpx.config.request import Request
from rbpx.errors import RbpxError
from rbpx.store.imports import dataset_names
from rbpx.store.remote import open_store

_GROUPS = ("model", "dataset", "protocol")


class Keys(TypedDict, total=False):
    """What an analysis can be asked, as on the command line; a list of models, datasets or protocols is a sweep.

    Attributes:
        model: family, one or several.
        size: label of a size, or several; all if left out.
        dataset: text, one or several.
        protocol: how documents were read.
        family: narrows to families by name, also those without a file of their own.
        source: whose observations: "measured", or the name that they were imported under.
        variant: narrows to models that were trained so, one or several.
        k: one, several, or "log".
        n: lengths of windows and sequences, tokens.
        S: sizes to predict, non-embedding parameters.
        D: training tokens to predict at, with S: lists of one length go pairwise.
        ties: tie rule.
        method: how laws are fitted, one or several, or "all".
        laws: which, or "all".
        axis: what laws of one variable are in: size, training tokens, training FLOPs or steps.
        form: equation of a surface, one or several, or "all".
        objective: what a surface minimises.
        delta: where Huber's loss of a surface turns linear.
        register: name under which a prediction is written into the store for good.
        budgets: training FLOPs whose best size and tokens are asked for.
        checkpoints: whether all checkpoints of a training count or the last alone.
        last: how many of the last checkpoints of each training are averaged and stand for it, in a surface.
        unique_tokens: tokens that there are for the best of a budget; beyond them they are repeated.
        features: of the right answer, from which success is predicted.
        held_out: sizes that are predicted and not fitted; the largest without it.
        drop: share of the checkpoints, the first ones, that success is not fitted to.
        smooth: checkpoints in a trailing mean of those.
        anchor: feature and success of one more point.
        starts: constants of the sigmoid at which its search begins.
        bounds: ends of these constants.
        chance: success of guessing, or that of each task.
        warm_up: training tokens from which a law of a training holds; found if left out.
        next: how many runs to train next to name.
        flops: what they may cost in all, training FLOPs.
        slices: "position", "frequency", or SQL conditions by name.
        tolerance: how many times as far as rounding explains another engine may be from float32.
        resamples: of the documents.
        seed: of the resamples.
        least: how often a token id must be scored to be listed.
        top: rows that are printed.
        limit: documents at most, to measure.
        dtype: precision to measure in.
        device: to measure on: "auto", "cpu", "cuda" or "split".
        tokens_per_batch: padded tokens in a batch; changes speed, and results by rounding alone.
        deterministic: whether measured bits are to be the same for every batch size.
        sql_timeout_s: seconds that an SQL condition of `slices` may take.
        sql_memory_mib: memory, MiB, for SQL.
    """

    model: str | Sequence[str]
    size: str | Sequence[str]
    dataset: str | Sequence[str]
    protocol: str | Sequence[str]
    family: str | Sequence[str]
    source: str
    variant: str | Sequence[str]
    k: int | Sequence[int] | Literal["log"]
    n: int | Sequence[int]
    S: float | Sequence[float]
    D: float | Sequence[float]
    ties: Literal["pessimistic", "optimistic", "mid"]
    method: str | Sequence[str]
    laws: str | Sequence[str]
    axis: Literal["S", "D", "C", "step"]
    form: str | Sequence[str]
    objective: Literal["log_huber", "huber", "least_squares"]
    delta: float
    register: str
    budgets: float | Sequence[float]
    checkpoints: Literal["all", "last"]
    last: int
    unique_tokens: float
    features: str | Sequence[str]
    held_out: str | Sequence[str]
    drop: float
    smooth: int
    anchor: Sequence[float] | None
    starts: Mapping[str, float]
    bounds: Mapping[str, Sequence[float | None]]
    chance: float | Mapping[str, float]
    warm_up: float
    next: int
    flops: float
    slices: str | Mapping[str, str]
    tolerance: float
    resamples: int
    seed: int
    least: int
    top: int
    limit: int
    dtype: Literal["float32", "bfloat16", "float16"]
    device: Literal["auto", "cpu", "cuda", "split"]
    tokens_per_batch: int
    sql_timeout_s: float | None
    sql_memory_mib: int | None
    deterministic: bool


def requests(
    verb: str,
    keys: Mapping[str, Any],
    store: str,
    config_dir: Path | None = None,
    primary: str | None = None,
    fixed: Mapping[str, Any] | None = None,
) -> list[Request]:
    """One request for each combination of the models, datasets and protocols that are listed.

    Args:
        verb: as on the command line.
        keys: by name; keys of a group have a dot: `**{"model.revision": "step1000"}`.
        store: folder or s3:// URL of the store.
        config_dir: folder with a user's own model/NAME.yaml and dataset/NAME.yaml.
        primary: the file of conf/ that they begin from; None: that of the analysis.
        fixed: keys that are set beside them.

    Raises:
        RbpxError: a key is unknown, or a value is not what its key takes.
    """
    reserved = [name for name in keys if name in ("store", "format", "output")]
    if reserved:
        raise RbpxError(
            f"{reserved[0]}= is not a key of {verb} here; name the store in rbpx.open(STORE), answers are values"
        )
    own = [] if config_dir is None else [f"hydra.searchpath=[{quoted(f'file://{config_dir.resolve()}')}]"]
    combinations = [[(name, choice) for choice in _choices(name, value)] for name, value in keys.items()]
    primary = primary or analysis(verb).primary
    base = [f"store={quoted(store)}", *own, *(f"{name}={written(value)}" for name, value in (fixed or {}).items())]
    jobs = [[f"{name}={written(value)}" for name, value in job] for job in product(*combinations)]
    narrowed = any(names_dataset(primary, job) for job in jobs)
    held = dataset_names(open_store(store)) if narrowed else []
    return [compose(primary, [*base, *job], held) for job in jobs]


def _choices(name: str, value: Any) -> list[Any]:
    if name in _GROUPS and isinstance(value, Iterable) and not isinstance(value, str):
        return list(value)
    return [value]


def written(value: Any) -> str:
    """A value in the grammar of Hydra's overrides.

    Raises:
        RbpxError: it is nothing that a key takes.
    """
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case Enum():
            return written(value.value)
        case str() | PathLike():
            text = str(value)
            return text if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*", text) and not _is_constant(text) else quoted(text)
        case Integral():
            return str(int(value))
        case Real():
            return repr(float(value))
        case Mapping():
            return "{" + ", ".join(f"{name}: {written(each)}" for name, each in value.items()) + "}"
        case Iterable():
            return "[" + ",".join(written(each) for each in value) + "]"
    raise RbpxError(f"{value!r} is not a value that a key takes; give text, numbers, lists or mappings of them")


def _is_constant(text: str) -> bool:
    """Whether Hydra would read a word as something else than itself."""
    return text.lower() in {"null", "true", "false", "nan", "inf"}
