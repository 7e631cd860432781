"""The rules of imported tables: for each field its headings, its numbers with their unit and remedy, and its kind.

What columns say together is in `columns`, what rows say together in `plausible` and `contradictions`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final

import pyarrow as pa

from rbpx.config.imports import FEW_PARAMS
from rbpx.store.imports.cells import BELOW, Number
from rbpx.store.imports.units import read_heading
from rbpx.store.schema import VARY

_WITH_UNIT: Final = ("model size", "size", "data size", "dataset size")  # count with a unit alone
_COUNT: Final = r"(?:(?:n|num|number of|#) ?)?"
_OF: Final = r"(?:val(?:id(?:ation)?)?|eval(?:uation)?|test)[ /.]"
# Field -> how a heading is read that people write for it without a unit; the fields that are known instead where they
# are there; such headings, the preferred one first.
_PEOPLE: Final[dict[str, tuple[str, ...]]] = {
    "non_embedding_params": (
        *("S (parameters without embeddings)", ""),
        rf"{_COUNT}(?:non ?embedding )?param(?:eter)?s|(?:model )?size",
    ),
    "active_params": ("active_params", "", r"activ(?:e|ated) param(?:eter)?s"),
    "total_params": ("total_params", "", r"total param(?:eter)?s"),
    "training_tokens": (
        *("D (tokens)", ""),
        *(rf"{_COUNT}(?:(?:pre ?)?train(?:ing|ed)? )?(?:tokens|data(?:set)? size)", "num input tokens seen"),
    ),
    "training_flops": ("C (FLOPs)", "training_tokens", r"(?:(?:pre ?)?train(?:ing)? )?(?:flops?|compute)"),
    "cross_entropy_nats": (
        *("loss_nats (nats per token)", "loss_bits perplexity"),
        *(rf"(?!test){_OF}loss", r"test[ /.]loss", r"(?:final )?loss", r"train(?:ing)?[ /.]loss"),
    ),
    "perplexity": (
        *("perplexity of a token (its logarithm is loss_nats)", "cross_entropy_nats loss_bits"),
        rf"(?:{_OF})?(?:ppl|perplexity)",
    ),
    "bits_per_byte": ("bits_per_byte", "", rf"(?:{_OF})?bpb"),
}


@dataclass(frozen=True)
class Rule:
    """The rule of a field.

    Attributes:
        names: of its column, the preferred one first; compared without regard to case.
        numbers: that it may hold; None of a name.
        kind: quantity (a loss or an accuracy), stderr of one, rank (of RBP), item (of attempts), model (what a run in
            a column of its own has from the request), or run.
        least: of its largest number where no unit is said; 0 for any, None where no heading says a unit.
        units: the usual ones, for the error of a smaller number.
        means: how a heading that people write is read where it says no unit.
        unless: fields that are known instead of such a heading.
        people: these headings as patterns, the preferred one first; in lower case, with spaces.
    """

    names: tuple[str, ...]
    numbers: Number | None
    kind: str
    least: int | None
    units: str
    means: str
    unless: frozenset[str]
    people: tuple[str, ...]

    @property
    def shown(self) -> str:
        """Its name in errors."""
        return self.means.partition(" ")[0]

    @property
    def type(self) -> pa.DataType:
        """Its Arrow type."""
        return pa.string() if self.numbers is None else pa.int64() if self.numbers.whole else pa.float64()


def _rule(
    names: str, numbers: Number | None = None, kind: str = "run", least: int | None = None, units: str = ""
) -> Rule:
    each = tuple(names.split())
    means, unless, *people = _PEOPLE.get(each[0], (each[0], ""))
    return Rule(each, numbers, kind, least, units, means, frozenset(unless.split()), tuple(people))


def _whole(meaning: str, least: int = 1, most: int = 2**63 - 1, is_rounded: bool = False) -> Number:
    return Number(meaning, least, most, whole=True, is_rounded=is_rounded)


def _positive(meaning: str, whole: bool = False) -> Number:
    how = f"a positive number is expected, as 60000000, 60M or 6e7: {meaning}"
    return Number(how, above=True, whole=whole, most=2**63 - 1 if whole else BELOW)


def _loss(unit: str) -> Number:
    kept = f"; a loss less that of a unigram is kept as a column {VARY}NAME, beside one that is of this unit"
    return Number(f"give {unit}, finite and 0 or more, or nothing", scaled=False, may_be_nan=True, below_0=kept)


_TOKENS: Final = "are a whole number from 1, not billions (write 1.5B); or empty"
_FROM_0: Final = "a whole number from 0 is expected, or empty"
_SHARE: Final = Number("give shares in [0, 1], not percent", most=1, scaled=False)
_PERPLEXITY: Final = Number("a perplexity is finite and 1 or more", least=1, scaled=False, may_be_nan=True)
_TRAINED: Final = _whole(f"tokens that were trained on {_TOKENS}", is_rounded=True)
_OF_FLOPS: Final = "1e18 (EFLOP) or 1e21 (ZFLOP)"
_SCHEDULE: Final = _whole(f"tokens of a schedule {_TOKENS}")
_RATE: Final = Number("a learning rate is a number, 0 or more, or nothing", may_be_nan=True)
_KNOB: Final = Number("a number is expected, as 0.003, 3e-3 or 512, or nothing", least=-BELOW, may_be_nan=True)
_TABLE: Final = (
    _rule("family"),
    _rule("size", kind="model"),
    _rule("model hub_id model_name", kind="model"),
    _rule("revision"),
    _rule("non_embedding_params s", _positive("give parameters, not millions"), "model", FEW_PARAMS, "1e6 or 1e9"),
    _rule("active_params", _positive("those of S that a token uses, not millions, or empty"), "model", 0),
    _rule("total_params", _positive("all parameters, or empty", whole=True), "model", 0),
    _rule("training_tokens d", _TRAINED, "run", 10_000, "1e6 or 1e9"),
    _rule("training_flops c", _positive("the operations of the whole training, or empty"), "run", 10**9, _OF_FLOPS),
    _rule("training_step step", _whole(_FROM_0, 0, is_rounded=True), least=0),
    _rule("unique_tokens", _whole(f"tokens {_TOKENS}", is_rounded=True), least=0),
    _rule("training_seed", _whole(_FROM_0, 0)),
    *map(_rule, ("variant", "dataset", "text_hash", "protocol", "dtype")),
    _rule("k", _whole("a rank is a whole number from 1", most=2**31 - 1), "rank"),
    _rule("n", _whole("the length of a window is a whole number from 1", most=2**31 - 1), "rank"),
    _rule("ties"),
    _rule("rbp p_all_n_in_topk p_nk p", _SHARE, "rank"),
    _rule("n_tokens", _whole("a count is a whole number from 1, or empty", is_rounded=True), "rank"),
    _rule("cross_entropy_nats loss_nats mean_cross_entropy_nats ce cross_entropy", _loss("nats per token"), "quantity"),
    _rule("cross_entropy_nats_stderr loss_nats_stderr", _loss("nats per token"), "stderr"),
    _rule("loss_bits", _loss("bits per token"), "quantity"),
    _rule("loss_bits_stderr", _loss("bits per token"), "stderr"),
    _rule("perplexity ppl", _PERPLEXITY, "quantity"),
    _rule("bits_per_byte", _loss("bits per byte"), "quantity"),
    _rule("bits_per_byte_stderr", _loss("bits per byte"), "stderr"),
    _rule("accuracy", replace(_SHARE, may_be_nan=True), "quantity"),
    _rule("accuracy_stderr", replace(_SHARE, may_be_nan=True), "stderr"),
    _rule("weight", _positive("how much the run counts beside others, or empty")),
    _rule("tokens_per_step", _whole("tokens of a step are a whole number from 1, or empty"), least=0),
    _rule("schedule lr_schedule"),
    _rule("schedule_tokens", _SCHEDULE, least=0),
    _rule("lr", _RATE),
    _rule("warmup_tokens", _whole(_FROM_0, 0), least=0),
    _rule("decay_tokens", _SCHEDULE, least=0),
    _rule("lr_decay"),
    _rule("final_lr", _RATE),
    _rule("item problem problem_id", kind="item"),
    _rule("n_samples num_samples", _whole("attempts at an item are a whole number from 1"), "item"),
    _rule("n_correct num_correct", _whole("right attempts are a whole number from 0 to n_samples", 0), "item"),
)
_USUAL: Final = ("params", "parameters", "tokens", "flops", "compute", "loss", "val/loss", "test/loss", "ppl", "bpb")
RULES: Final = {rule.names[0]: rule for rule in _TABLE}


def rule_of(field: str) -> Rule:
    """The rule of a field, of rbp_K, of vary_NAME or of a name without a column."""
    others = _KNOB if field.startswith(VARY) else _SHARE if field.startswith("rbp_") else None
    return RULES.get(field) or _rule(field, others)


def of_kind(*kinds: str) -> tuple[str, ...]:
    """The fields of some kinds, in the order of the table."""
    return tuple(name for name, rule in RULES.items() if rule.kind in kinds)


def rank_of(rule: Rule, heading: str) -> int | None:
    """The place of a heading among those of a field: below 0 of our names, from 0 of what people write; else None."""
    if plain(heading) in rule.names:
        return rule.names.index(plain(heading)) - len(rule.names)
    name, times = read_heading(heading)
    if times is not None and rule.least is not None and name.replace(" ", "_") in rule.names:
        return 0
    patterns = () if times is None and name in _WITH_UNIT else rule.people
    return next((at for at, pattern in enumerate(patterns) if re.fullmatch(pattern, name)), None)


def field_of(name: str, fields: Iterable[str] = RULES) -> str | None:
    """The field that a name means, one of ours or of those that people write; None for an unknown name."""
    ranked = ((rank_of(RULES[field], name), field) for field in fields)
    return min(((rank, field) for rank, field in ranked if rank is not None), default=(0, None))[1]


def misspelt(heading: str) -> str | None:
    """The field, as errors name it, whose heading one is nearly, by letters alone; None where none is near."""
    known = [*(name.replace("_", " ") for rule in _TABLE for name in rule.names if len(name) > 2), *_USUAL]
    name = read_heading(heading)[0]  # word_perplexity is no misspelt perplexity
    known = [each for each in known if not field_of(heading) and abs(len(each) - len(name)) <= 2]
    near = get_close_matches(name, known, n=1, cutoff=0.8)
    field = field_of(near[0].replace(" ", "_")) if near else None
    return None if field is None else RULES[field].shown


def plain(column: str) -> str:
    """The name of a column without regard to case."""
    return column.strip().lower()
