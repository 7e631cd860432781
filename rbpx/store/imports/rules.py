"""The rules of imported tables: for each field its headings, its numbers with their unit and remedy, and its kind.

What columns say together is in `columns`, what rows say together in `plausible` and `contradictions`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from rbpx.config.imports import FEW_PARAMS
from rbpx.store.imports.cells import BELOW, Number
from rbpx.store.imports.units import read_heading
from rbpx.store.schema import VARY

_WITH_UNIT: Final = ("model size", "size", "data size", "dataset size")  # count with a unit alone


def _whole(meaning: str, least: int = 1, most: int = 2**63 - 1, is_rounded: bool = False) -> Number:
    return Number(meaning, least, most, whole=True, is_rounded=is_rounded)


def _positive(meaning: str, whole: bool = False) -> Number:
    how = f"a positive number is expected, as 60000000, 60M or 6e7: {meaning}"
    return Number(how, above=True, whole=whole, most=2**63 - 1 if whole else BELOW)


def _loss(unit: str) -> Number:
    kept = f"; a loss less that of a unigram is kept as a column {VARY}NAME, beside one that is of this unit"
    return Number(f"give {unit}, finite and 0 or more, or nothing", scaled=False, may_be_nan=True, below_0=kept)


_TOKENS: Final = "are a whole number from 1, not billions (write 1.5B); or empty"
_SHARE: Final = "give shares in [0, 1], not percent"
_NUMBERS: Final = {
    "S": _positive("give parameters, not millions"),
    "active": _positive("those of S that a token uses, not millions, or empty"),
    "total": _positive("all parameters, or empty", whole=True),
    "D": _whole(f"tokens that were trained on {_TOKENS}", is_rounded=True),
    "C": _positive("the operations of the whole training, or empty"),
    "unique": _whole(f"tokens {_TOKENS}", is_rounded=True),
    "schedule": _whole(f"tokens of a schedule {_TOKENS}"),
    "batch": _whole("tokens of a step are a whole number from 1, or empty"),
    "step": _whole("a whole number from 0 is expected, or empty", 0, is_rounded=True),
    "from 0": _whole("a whole number from 0 is expected, or empty", 0),
    "rate": Number("a learning rate is a number, 0 or more, or nothing", may_be_nan=True),
    "weight": _positive("how much the run counts beside others, or empty"),
    "k": _whole("a rank is a whole number from 1", most=2**31 - 1),
    "n": _whole("the length of a window is a whole number from 1", most=2**31 - 1),
    "share": Number(_SHARE, most=1, scaled=False),
    "count": _whole("a count is a whole number from 1, or empty", is_rounded=True),
    "nats": _loss("nats per token"),
    "bits": _loss("bits per token"),
    "bytes": _loss("bits per byte"),
    "perplexity": Number("a perplexity is finite and 1 or more", least=1, scaled=False, may_be_nan=True),
    "accuracy": Number(_SHARE, most=1, scaled=False, may_be_nan=True),
    "stderr": _loss("a share"),
    "attempts": _whole("attempts at an item are a whole number from 1"),
    "right": _whole("right attempts are a whole number from 0 to n_samples", 0),
    VARY: Number("a number is expected, as 0.003, 3e-3 or 512, or nothing", least=-BELOW, may_be_nan=True),
}
# Names of a column, the preferred one first | its numbers, none of a name | its kind, `run` if left out | where a
# heading may say a unit, the least of the largest number without one (or 0), and the usual units
_TABLE: Final = f"""
family
size                                        |            | model
model hub_id model_name                     |            | model
revision
non_embedding_params s                      | S          | model    | {FEW_PARAMS} 1e6 or 1e9
active_params                               | active     | model    | 0
total_params                                | total      | model    | 0
training_tokens d                           | D          |          | 10000 1e6 or 1e9
training_flops c                            | C          |          | 1000000000 1e18 (EFLOP) or 1e21 (ZFLOP)
training_step step                          | step       |          | 0
unique_tokens                               | unique     |          | 0
training_seed                               | from 0
variant
dataset
text_hash
protocol
dtype
k                                           | k          | rank
n                                           | n          | rank
ties
rbp p_all_n_in_topk p_nk p                  | share      | rank
n_tokens                                    | count      | rank
cross_entropy_nats loss_nats mean_cross_entropy_nats ce cross_entropy | nats | quantity
cross_entropy_nats_stderr loss_nats_stderr  | nats       | stderr
loss_bits                                   | bits       | quantity
loss_bits_stderr                            | bits       | stderr
perplexity ppl                              | perplexity | quantity
bits_per_byte                               | bytes      | quantity
bits_per_byte_stderr                        | bytes      | stderr
accuracy                                    | accuracy   | quantity
accuracy_stderr                             | stderr     | stderr
weight                                      | weight
tokens_per_step                             | batch      |          | 0
schedule lr_schedule
schedule_tokens                             | schedule   |          | 0
lr                                          | rate
warmup_tokens                               | from 0     |          | 0
decay_tokens                                | schedule   |          | 0
lr_decay
final_lr                                    | rate
item problem problem_id                     |            | item
n_samples num_samples                       | attempts   | item
n_correct num_correct                       | right      | item
"""
_COUNT: Final = r"(?:(?:n|num|number of|#) ?)?"
_OF: Final = r"(?:val(?:id(?:ation)?)?|eval(?:uation)?|test)[ /.]"
# Field -> how a heading is read that people write for it without a unit | the fields that are known instead where they
# are there | such headings as patterns, the preferred first; compared in lower case, with spaces.
_PEOPLE: Final = {
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
        people: these headings.
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


def _rule(line: str) -> Rule:
    names, numbers, kind, unit = ([part.strip() for part in line.split("|")] + [""] * 3)[:4]
    least, _, units = unit.partition(" ")
    each = tuple(names.split())
    means, unless, *people = _PEOPLE.get(each[0], (each[0], ""))
    count = int(least) if unit else None
    return Rule(
        each, _NUMBERS.get(numbers), kind or "run", count, units, means, frozenset(unless.split()), tuple(people)
    )


RULES: Final = {rule.names[0]: rule for rule in map(_rule, _TABLE.strip().splitlines())}


def of_kind(*kinds: str) -> tuple[str, ...]:
    """The fields of some kinds, in the order of the table."""
    return tuple(name for name, rule in RULES.items() if rule.kind in kinds)


def numbers_of(field: str) -> Number | None:
    """The numbers that a field, rbp_K or vary_NAME may hold; None of a name."""
    if field.startswith(VARY):
        return _NUMBERS[VARY]
    return _NUMBERS["share"] if field.startswith("rbp_") else RULES[field].numbers if field in RULES else None


def type_of(field: str) -> pa.DataType:
    """The Arrow type of a field."""
    numbers = numbers_of(field)
    return pa.string() if numbers is None else pa.int64() if numbers.whole else pa.float64()


def rank_of(rule: Rule, heading: str) -> int | None:
    """The place of a heading among those that people write for a field; None for any other."""
    name, times = read_heading(heading)
    patterns = () if times is None and name in _WITH_UNIT else rule.people
    return next((at for at, pattern in enumerate(patterns) if re.fullmatch(pattern, name)), None)


def field_of(name: str, fields: Sequence[str] = tuple(RULES)) -> str | None:
    """The field that a name means, one of ours or of those that people write; None for an unknown name."""
    ours = next((known for known in fields if plain(name) in RULES[known].names), None)
    return ours or next((known for known in fields if rank_of(RULES[known], name) is not None), None)


def shown_field(field: str) -> str:
    """The name of a field in errors."""
    return RULES[field].shown if field in RULES else field


def plain(column: str) -> str:
    """The name of a column without regard to case."""
    return column.strip().lower()
