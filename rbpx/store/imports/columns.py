"""Maps the columns of users' tables to fields, by a table of known names or as the user chose."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import combinations
from typing import Any, Final

from rbpx.config.imports import choice_of
from rbpx.errors import RbpxError
from rbpx.spelling import typed
from rbpx.store.imports.cells import NUMBERS
from rbpx.store.imports.units import shown, spoken_headings, unit_of
from rbpx.store.schema import VARY

# Field -> names of its column, the preferred one first; compared without regard to case.
ALIASES: dict[str, tuple[str, ...]] = {
    "family": ("family",),
    "size": ("size",),
    "model": ("model", "hub_id", "model_name"),
    "revision": ("revision",),
    "non_embedding_params": ("non_embedding_params", "s"),
    "active_params": ("active_params",),
    "total_params": ("total_params",),
    "training_tokens": ("training_tokens", "d"),
    "training_flops": ("training_flops", "c"),
    "training_step": ("training_step", "step"),
    "unique_tokens": ("unique_tokens",),
    "training_seed": ("training_seed",),
    "variant": ("variant",),
    "dataset": ("dataset",),
    "text_hash": ("text_hash",),
    "protocol": ("protocol",),
    "dtype": ("dtype",),
    "k": ("k",),
    "n": ("n",),
    "ties": ("ties",),
    "rbp": ("rbp", "p_all_n_in_topk", "p_nk", "p"),
    "n_tokens": ("n_tokens",),
    "cross_entropy_nats": ("cross_entropy_nats", "loss_nats", "mean_cross_entropy_nats", "ce", "cross_entropy"),
    "cross_entropy_nats_stderr": ("cross_entropy_nats_stderr", "loss_nats_stderr"),
    "loss_bits": ("loss_bits",),
    "loss_bits_stderr": ("loss_bits_stderr",),
    "perplexity": ("perplexity", "ppl"),  # found by its heading where no loss is
    "bits_per_byte": ("bits_per_byte",),
    "bits_per_byte_stderr": ("bits_per_byte_stderr",),
    "accuracy": ("accuracy",),
    "accuracy_stderr": ("accuracy_stderr",),
    "weight": ("weight",),
    "tokens_per_step": ("tokens_per_step",),
    "schedule": ("schedule", "lr_schedule"),
    "schedule_tokens": ("schedule_tokens",),
    "lr": ("lr",),
    "warmup_tokens": ("warmup_tokens",),
    "decay_tokens": ("decay_tokens",),
    "lr_decay": ("lr_decay",),
    "final_lr": ("final_lr",),
    "item": ("item", "problem", "problem_id"),
    "n_samples": ("n_samples", "num_samples"),
    "n_correct": ("n_correct", "num_correct"),
}
QUANTITIES: Final = ("cross_entropy_nats", "loss_bits", "perplexity", "bits_per_byte", "accuracy")  # besides RBP_k
OF_ITEM: Final = ("item", "n_samples", "n_correct")  # attempts at an item
COUNTED: Final = (  # a heading may say that these are in millions or billions
    *("non_embedding_params", "active_params", "total_params", "training_tokens", "training_flops", "unique_tokens"),
    *("schedule_tokens", "warmup_tokens", "decay_tokens", "tokens_per_step", "training_step"),
)
OF_RUN: Final = (*QUANTITIES, "lr")  # may have a column for each run
_OF_TEXTS: Final = (
    *QUANTITIES,
    *(f"{name}_stderr" for name in QUANTITIES if name != "perplexity"),
    "rbp",
    "k",
    "n",
    "n_tokens",
)
_OF_RUNS: Final = (*_OF_TEXTS, "non_embedding_params", "active_params", "total_params", "model", "size")
_OF_WINDOWS = ("p_all_n_in_topk", "p_nk")
_WIDE = re.compile(r"rbp_([1-9]\d*)")  # rbp_10 holds RBP_10
_VARY = re.compile(r"vary_[a-z0-9_]+")  # what runs of one size vary: a learning rate, a batch size
_DERIVED = re.compile(r".*__(min|max)", re.IGNORECASE)  # beside each column that Weights & Biases exports
_SHOWN: Final = {
    **{"non_embedding_params": "S", "training_tokens": "D", "training_flops": "C"},
    "cross_entropy_nats": "loss_nats",
}
_SPOKEN: Final = ("cross_entropy_nats", "perplexity", "bits_per_byte")  # found by headings that people write
_UNLESS: Final = {  # field -> others that are known instead where its heading has no unit
    "training_flops": {"training_tokens"},
    "cross_entropy_nats": {"loss_bits", "perplexity"},
    "perplexity": {"cross_entropy_nats", "loss_bits"},
}
_MEANS: Final = {  # field -> how a heading without a unit is read
    "non_embedding_params": "S (parameters without embeddings)",
    "training_tokens": "D (tokens)",
    "training_flops": "C (FLOPs)",
    "cross_entropy_nats": "loss_nats (nats per token)",
    "perplexity": "perplexity of a token (its logarithm is loss_nats)",
}
_OTHERWISE = re.compile(r".*(per_?char|\bbpc\b|unigram).*")  # per character, or normalised by a unigram
_TEXTS: Final = {"c4": {"loss_nats": "COLUMN"}, "hellaswag": {"accuracy": "COLUMN"}}  # an example


@dataclass(frozen=True)
class Columns:
    """The mapping of the columns of a file.

    Attributes:
        named: field -> column.
        wide: k -> column of RBP_k; empty where `named` has rbp.
        ignored: columns that are not recognised.
        times: field, or rbp_K -> the factor of its column, from its heading or the user.
        texts: text -> its own columns, where several texts are in one row.
        runs: run -> its own columns, where several runs are in one row.
        spoken: column -> how its heading was read, as `S times 1e6`, where it is none of our names.
    """

    named: dict[str, str]
    wide: dict[int, str]
    ignored: tuple[str, ...]
    times: dict[str, Decimal] = field(default_factory=dict)
    texts: dict[str, "Columns"] = field(default_factory=dict)
    runs: dict[str, "Columns"] = field(default_factory=dict)
    spoken: dict[str, str] = field(default_factory=dict)

    def shown(self, field: str, text: str | None = None, run: str | None = None) -> str:
        """The user's column for a field of one text or run; the field where there is none."""
        for of in (self.texts.get(text or ""), self.runs.get(run or ""), self):
            named = {} if of is None else of.named
            if field in named:
                return named[field]
            for other in ("loss_bits", "perplexity"):
                column = named.get(field.replace("cross_entropy_nats", other))
                if column is not None:
                    return f"{column} in nats"
        return next(iter(self.wide.values()), field) if field == "rbp" else field

    @property
    def has_rbp(self) -> bool:
        """Whether there is RBP_k, which has a tie rule."""
        return "rbp" in self.named or bool(self.wide) or any(text.has_rbp for text in self.texts.values())

    @property
    def mapping(self) -> dict[str, str]:
        """Field, or rbp_K, or TEXT: FIELD, or RUN: FIELD, -> column and factor, for provenance."""
        own = self.named | {f"rbp_{k}": column for k, column in self.wide.items()}
        own |= {name: f"{own[name]} times {shown(times)}" for name, times in self.times.items() if times != 1}
        apart = [*self.texts.items(), *self.runs.items()]
        return own | {f"{name}: {key}": column for name, of in apart for key, column in of.mapping.items()}


def named_columns(columns: Sequence[str], fields: Sequence[str]) -> dict[str, str]:
    """Field -> the column that has one of its names, for the fields that have such a column."""
    by_name = {_plain(column): column for column in columns}
    aliases = {field: next((alias for alias in ALIASES[field] if alias in by_name), None) for field in fields}
    return {field: by_name[alias] for field, alias in aliases.items() if alias is not None}


def match_columns(
    columns: Sequence[str],
    chosen: Mapping[str, Any],
    file: str,
    texts: Mapping[str, Mapping[str, Any]] | None = None,
    runs: Mapping[str, Mapping[str, str]] | None = None,
) -> tuple[Columns, list[str]]:
    """Map the columns of a file of observations as the user chose, else by name; also returns what is wrong.

    Wrong are a loss without its unit, no quantity at all, no S, and RBP both in one column and in one for each k.

    Args:
        columns: names of the columns, no two of which differ only in case.
        chosen: field, by any of its names, or rbp_K -> column, or {column, times}.
        file: the file, for errors.
        texts: text -> such choices for its measurements, where texts are in columns.
        runs: run -> the same, where runs are in columns.

    Raises:
        RbpxError: a choice of a field or column that does not exist.
    """
    by_name = {_plain(column): column for column in columns}
    runs = {
        name: {of: _of_run(by_name, column) for of, column in named.items()} for name, named in (runs or {}).items()
    }
    own_columns = _chosen(by_name, chosen, f"columns: {file}", tuple(ALIASES))
    named, wide, times = own_columns.named, own_columns.wide, own_columns.times
    of_texts, of_runs = (
        {name: _chosen(by_name, of, f"{key}: {name}: {file}", fields) for name, of in (each or {}).items()}
        for key, each, fields in (("texts", texts, _OF_TEXTS), ("runs", runs, OF_RUN))
    )
    apart, own = ("runs", _OF_RUNS) if of_runs else ("texts", _OF_TEXTS) if of_texts else ("", ())
    used = {
        column
        for of in (own_columns, *of_texts.values(), *of_runs.values())
        for column in (*of.named.values(), *of.wide.values())
    }
    free = {name: column for name, column in by_name.items() if column not in used}
    for of in (own_columns, *of_texts.values()):  # the standard error of a column that was chosen is that beside it
        for name in QUANTITIES:
            beside = f"{_plain(of.named.get(name, ''))}_stderr"
            if f"{name}_stderr" in ALIASES and f"{name}_stderr" not in of.named and beside in free:
                of.named[f"{name}_stderr"] = free.pop(beside)
    fields = [name for name in ALIASES if name not in (*own, "perplexity")]
    for name, column in named_columns(list(free.values()), fields).items():
        if name not in named and not (name == "rbp" and wide):
            named[name] = free.pop(_plain(column))
    named |= {_plain(c): free.pop(name) for name, c in list(free.items()) if _VARY.fullmatch(_plain(c))}
    problems: list[str | None] = []
    unclear: dict[str, str] = {}
    spoken = {
        column: how for of in (own_columns, *of_texts.values(), *of_runs.values()) for column, how in of.spoken.items()
    }
    wanted = {name: ALIASES[name] for name in (*COUNTED, *_SPOKEN) if name not in (*named, *own)}
    for name, found in spoken_headings(free.values(), wanted).items():
        has_unit = unit_of(found[0]) is not None
        if len(found) > 1:
            both, which = " and ".join(map(repr, found)), typed(columns={shown_field(name): "NAME"})
            unclear[name] = found[0]
            problems.append(f"{file}: {both} may both be {shown_field(name)}; say which: {which}")
        elif has_unit or not _UNLESS.get(name, set()) & named.keys():
            named[name] = free.pop(_plain(found[0]))
            spoken |= {} if has_unit else {named[name]: _MEANS.get(name, shown_field(name))}
    with_units = {name: unit.times for name in COUNTED if (unit := unit_of(named.get(name, "")))}
    times = with_units | times
    spoken |= {named[name]: f"{shown_field(name)} times {shown(times[name])}" for name in with_units}
    if "rbp" not in chosen and not apart:
        wide |= {int(_plain(c)[4:]): free.pop(name) for name, c in list(free.items()) if _WIDE.fullmatch(name)}
    if "n_correct" not in named or apart:
        free |= {_plain(named[name]): named.pop(name) for name in OF_ITEM if name in named}
    problems += [_problem(of.named, of.wide, columns, {}, f"texts: {text}: {file}") for text, of in of_texts.items()]
    if apart:
        in_texts = ("dataset", "text_hash") if of_texts else ()
        doubled = next((name for name in (*in_texts, *own) if name in named), "rbp" if wide else None)
        if doubled is not None:
            problems.append(
                f"{apart}: {file} would read its {doubled} twice; name it in {apart}= or columns=, not both"
            )
    else:
        if "rbp" not in named and not wide:
            free |= {_plain(named[name]): named.pop(name) for name in ("k", "n", "ties") if name in named}
        problems.append(_problem(named | unclear, wide, columns, free, file))
    if not of_runs and "non_embedding_params" not in named | unclear:
        problems.append(
            f"{file} has no column S, the parameters without embeddings, nor non_embedding_params; it has: "
            f"{', '.join(columns)}; name it with {typed(columns={'S': 'NAME'})}, or S=6.5B of a file of one model"
        )
    columns_of = Columns(named, dict(sorted(wide.items())), tuple(free.values()), times, of_texts, of_runs, spoken)
    return columns_of, [problem for problem in problems if problem is not None]


def _of_run(by_name: Mapping[str, str], column: str) -> str:
    """The column of a run: of that name, or the only one named `NAME - val/loss` or the like."""
    if _plain(column) in by_name:
        return column
    logged = [each for name, each in by_name.items() if name.startswith(f"{_plain(column)} - ")]
    logged = [each for each in logged if not _DERIVED.fullmatch(each)]
    if len(logged) > 1:
        raise RbpxError(f"runs: {column} may be {' or '.join(map(repr, logged))}; say which with its column")
    return logged[0] if logged else column


def _chosen(by_name: Mapping[str, str], chosen: Mapping[str, Any], where: str, fields: Sequence[str]) -> Columns:
    """The columns that were chosen for fields, and for RBP at single k, with their factors."""
    named: dict[str, str] = {}
    wide: dict[int, str] = {}
    times: dict[str, Decimal] = {}
    spoken: dict[str, str] = {}
    for name, told in chosen.items():
        column, factor = choice_of(told)
        if _plain(column) not in by_name:
            raise RbpxError(f"{where} has no column {column!r} for {name}; it has: {', '.join(by_name.values())}")
        wide_field = _WIDE.fullmatch(name)
        meant = field_of(name, fields)
        if _VARY.fullmatch(name) and "variant" in fields:  # of a run, whatever its texts
            meant = name
        if wide_field:
            wide[int(wide_field[1])] = by_name[_plain(column)]
        elif meant is not None and meant not in named:
            named[meant] = by_name[_plain(column)]
            if meant in _MEANS and _plain(name) not in (meant, *ALIASES[meant], shown_field(meant).lower()):
                spoken[named[meant]] = _MEANS[meant]
        elif meant is not None:
            raise RbpxError(f"{where}: {name} and {meant} are one field; choose one column for it")
        else:
            known = ", ".join(shown_field(known) for known in fields)
            raise RbpxError(f"{where}: {name} is not a field of an observation; known: {known}, rbp_K, vary_NAME")
        if factor is not None:
            if not wide_field and meant not in NUMBERS and not str(meant).startswith(VARY):
                raise RbpxError(f"{where}: {name} takes no times, which is of one number; leave times out")
            times[meant or name] = factor
    return Columns(named, wide, (), times, spoken=spoken)


def field_of(name: str, fields: Sequence[str] = tuple(ALIASES)) -> str | None:
    """The field that a name means, one of ours or of those that people write; None for an unknown name."""
    ours = next((known for known in fields if _plain(name) in (known, *ALIASES[known])), None)
    return ours or next(iter(spoken_headings([name], dict.fromkeys(fields, ()))), None)


def shown_field(field: str) -> str:
    """The name of a field in errors."""
    return _SHOWN.get(field, field)


def _problem(
    named: Mapping[str, str], wide: Mapping[int, str], columns: Sequence[str], free: Mapping[str, str], file: str
) -> str | None:
    says = {*QUANTITIES, "n_correct"} & set(named)
    for quantity in ("cross_entropy_nats", "loss_bits", "bits_per_byte"):
        column = named.get(quantity, "")
        if spoken_headings([column], {"perplexity": ()}):
            how = typed(columns={"perplexity": column})
            return f"{file}: column {column!r} is no {shown_field(quantity)}; a perplexity of a token is read by {how}"
    if not says and "rbp" not in named and not wide:
        normalised = next((column for name, column in free.items() if _OTHERWISE.fullmatch(name)), None)
        if normalised is not None:
            kept = typed(columns={f"vary_{re.sub('[^a-z0-9]+', '_', _plain(normalised))}": normalised})
            return (
                f"{file}: column {normalised!r} is no loss per token or byte; keep it with {kept}, beside one that is"
            )
        return (
            f"{file} has no column rbp, nor rbp_1, rbp_10, ..., nor loss_nats, loss_bits, perplexity, bits_per_byte or "
            f"accuracy, nor n_correct of n_samples attempts at an item; it has: {', '.join(columns)}; name it with "
            f"{typed(columns={'rbp': 'NAME'})}, or {typed(texts=_TEXTS)}"
        )
    losses = [named.get(name) for name in ("cross_entropy_nats", "loss_bits", "perplexity")]
    for one, other in (*combinations(losses, 2), (next(iter(wide.values()), None), named.get("rbp", named.get("k")))):
        if one is not None and other is not None:
            return f"{file} has both {one!r} and {other!r}, which say the same of a row; leave one out"
    needs = [("n_correct", name) for name in OF_ITEM] + [("rbp", "k")]
    needs += [("rbp", "n")] if _plain(named.get("rbp", "")) in _OF_WINDOWS else []
    lacks = next(((named[name], needed) for name, needed in needs if name in named and needed not in named), None)
    if lacks is not None:
        return (
            f"{file} has {lacks[0]!r}, but no column {lacks[1]}; it has: {', '.join(columns)}; add it, or name it with "
            f"{typed(columns={lacks[1]: 'NAME'})}"
        )
    return None


def _plain(column: str) -> str:
    return column.strip().lower()
