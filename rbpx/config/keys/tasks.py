"""Keys of questions about tasks (features, and the sigmoid from a feature to success) and about single tokens."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from rbpx.config.folders import folder
from rbpx.config.keys.key import AnyOf, Choice, Keys, Within, is_number, key, name_of, names_of, whole
from rbpx.config.keys.laws import Averaged, Counted
from rbpx.errors import RbpxError
from rbpx.spelling import typed

N_AVERAGED: Final = 5  # checkpoints of a training whose mean predicts success (OLMo ladder, arXiv 2412.04403)
FEATURES: Final = ("cross_entropy", "bits_per_byte", "rbp", "exact_match", "error_entropy", "soft_accuracy")
_CONSTANTS: Final = ("a", "x0", "h", "b")


_SHARE: Final = Within(0, math.nextafter(1, 0), "is not a share of the checkpoints; give one in [0, 1), as in drop=0.1")


def _anchor(key: str, value: Any) -> tuple[float, float] | None:
    if value is None:
        return None
    is_point = isinstance(value, list) and len(value) == 2 and all(map(is_number, value))
    if not is_point or value[0] < 0 or not 0 <= value[1] <= 1:
        how = f"a feature from 0 and a share in [0, 1], as in {typed(anchor=[0, 1])}, or null"
        raise RbpxError(f"anchor={value} is not a point; give {how}")
    return float(value[0]), float(value[1])


def _starts(key: str, value: Any) -> dict[str, float]:
    how = typed(starts={"x0": 0.9, "h": 3})
    return {name: float(number) for name, number in _constants(key, value, how, is_number).items()}


def _bounds(key: str, value: Any) -> dict[str, tuple[float, float]]:
    def are_ends(ends: Any) -> bool:
        is_pair = isinstance(ends, list) and len(ends) == 2 and all(each is None or is_number(each) for each in ends)
        return is_pair and (None in ends or ends[0] <= ends[1])

    given = _constants(key, value, typed(bounds={"b": [0.9, 1]}), are_ends)
    return {
        name: (-math.inf if lower is None else float(lower), math.inf if upper is None else float(upper))
        for name, (lower, upper) in given.items()
    }


def _constants(key: str, value: Any, how: str, is_right: Callable[[Any], bool]) -> dict[str, Any]:
    if value is not None and not isinstance(value, dict):
        raise RbpxError(f"{key}={value} is not a mapping of constants; write {how}")
    for name, each in (value or {}).items():
        if name not in _CONSTANTS or not is_right(each):
            known = ", ".join(_CONSTANTS)
            raise RbpxError(f"{key}: {name}: {each} is not known of the sigmoid; its constants are {known}: {how}")
    return value or {}


def _chance(key: str, value: Any) -> Any:
    for share in value.values() if isinstance(value, Mapping) else () if value is None else (value,):
        if not is_number(share) or not 0 <= share < 1:
            raise RbpxError(f"chance={share} is not a share in [0, 1); give that of guessing, as in chance=0.25")
    return value


def chance_of(task: str, given: Any) -> float | None:
    """The success of guessing: as given, else from the file in conf/dataset."""
    number = given.get(task) if isinstance(given, Mapping) else given
    if number is not None:
        return float(number)
    from omegaconf import OmegaConf

    known = {path.stem: path for path in (folder("conf") / "dataset").glob("*.yaml")}
    chance = OmegaConf.select(OmegaConf.load(known[task]), "chance") if task in known else None
    return None if chance is None else float(chance)


class Tasks(Counted):
    """Features of tasks."""

    features: Choice = key(
        "all",
        "all, or a list of cross_entropy, bits_per_byte, rbp, exact_match, error_entropy, soft_accuracy",
        AnyOf(FEATURES, about=" (rbp at each k=)"),
        "all",
    )
    # a number, or task -> number
    chance: Any = key(
        None, "success of guessing, where the task is not in conf/dataset: a number, or {example}", _chance, "C",
        example={"mytask": 0.25},
    )  # fmt: skip


class TwoSteps(Averaged, Tasks):
    """The two steps from size to success."""

    @property
    def n_averaged(self) -> int:
        """Checkpoints over which the feature of a training is averaged."""
        return self.last or N_AVERAGED

    held_out: list[str] | None = key(
        None,
        "sizes that are predicted, not fitted: {example}; the largest if left out",
        names_of,
        example=["7B", "13B"],
    )
    drop: float = key(0.1, "share of the checkpoints, the first ones, that step 2 leaves out", _SHARE, "0.1")
    smooth: int = key(5, "checkpoints in the trailing means of step 2", whole(1), "5")
    anchor: tuple[float, float] | None = key(
        [0, 1], "feature and success of one point more in step 2, {example}; null for none", _anchor, example=[0, 1]
    )
    starts: dict[str, float] = key(
        None, "where the search for constants of the sigmoid begins: {example}", _starts, example={"x0": 0.9, "h": 3}
    )
    bounds: dict[str, tuple[float, float]] = key(
        None, "ends of these constants: {example}", _bounds, example={"b": [0.9, 1]}
    )


ITEM_SLICES: Final = ("category", "domain")  # of the items of a task
SLICES: Final = ("position", "frequency", *ITEM_SLICES)


def _slices(key: str, value: Any) -> str | dict[str, str] | None:
    if value is None or value in SLICES:
        built_in: str | None = value
        return built_in
    named = dict(value) if isinstance(value, Mapping) else {}
    if not named or not all(isinstance(each, str) and each.strip() for pair in named.items() for each in pair):
        how = typed(slices={"early": "position < 64"})
        raise RbpxError(f"slices={value} is not a choice of tokens; give {', '.join(SLICES)}, or conditions: {how}")
    return named


class OneDocument(Keys):
    """Which document is shown."""

    doc: int | None = key(None, "doc_id of the document that is shown", whole(0), "N")


class TwoModels(Keys):
    """Two models."""

    a: str | None = key(
        None, "one of two models: FAMILY/SIZE, with @REVISION and :DTYPE, or a run_id", name_of, "MODEL"
    )
    b: str | None = key(None, "the other one", name_of, "MODEL")


class Base(Keys):
    """What a variant is compared with."""

    base: str | None = key(
        None,
        "what variant= is compared with: FAMILY, or FAMILY:VARIANT where its models were trained in several ways",
        name_of,
        "FAMILY",
    )


class Slices(Keys):
    """Which tokens are told apart."""

    slices: str | dict[str, str] | None = key(
        None, "position, frequency, category, domain, or SQL conditions by name: {example}", _slices,
        example={"early": "position < 64"},
    )  # fmt: skip

    @property
    def conditions(self) -> dict[str, str]:
        """The slices that are SQL conditions, by name; none for built-in ones."""
        return self.slices if isinstance(self.slices, dict) else {}


class Listed(Keys):
    """Which token ids are listed."""

    least: int = key(20, "times that a token id must be scored to be listed", whole(1), "20")
    top: int = key(15, "rows that are printed", whole(1), "15")
