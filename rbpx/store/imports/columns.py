"""Maps the columns of users' tables to fields, by the rules' headings or as the user chose."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import combinations
from typing import Any, Final

from rbpx.config.imports import ImportConfig, choice_of
from rbpx.errors import RbpxError
from rbpx.files.rows import Rows
from rbpx.spelling import typed
from rbpx.store.imports.faults import refuse
from rbpx.store.imports.rules import RULES, Rule, field_of, misspelt, of_kind, plain, rank_of, rule_of
from rbpx.store.imports.units import read_heading, shown

QUANTITIES: Final = of_kind("quantity")  # besides RBP_k
OF_ITEM: Final = of_kind("item")  # attempts at an item
_OF_TEXTS: Final = (*QUANTITIES, *of_kind("stderr"), "rbp", "k", "n", "n_tokens")
_OF_RUN: Final = (*QUANTITIES, "lr")  # may have a column for each run
_WIDE: Final = re.compile(r"rbp_([1-9]\d*)")  # rbp_10 holds RBP_10
_VARY: Final = re.compile(r"vary_[a-z0-9_]+")  # what runs of one size vary: a learning rate, a batch size
_DERIVED: Final = re.compile(r".*__(min|max)", re.IGNORECASE)  # beside each column that Weights & Biases exports
_OTHERWISE: Final = re.compile(r".*(per_?char|\bbpc\b|unigram).*")  # per character, or normalised by a unigram
_TEXTS: Final = {"c4": {"loss_nats": "COLUMN"}, "hellaswag": {"accuracy": "COLUMN"}}  # an example
_NEEDS: Final = (*(("n_correct", name) for name in OF_ITEM), ("rbp", "k"))  # a field, and one that it needs beside it
_OF_WINDOWS: Final = ("p_all_n_in_topk", "p_nk")  # headings of RBP that need n too
_ONE_LOSS: Final = ("cross_entropy_nats", "loss_bits", "perplexity")  # say the same of a row


@dataclass(frozen=True)
class Columns:
    """The mapping of the columns of a file.

    Attributes:
        named: field, rbp_K or vary_NAME -> column.
        ignored: columns that are not recognised.
        times: such a field -> the factor of its column, from its heading or the user.
        apart: "texts" or "runs" where several of them are in one row.
        parts: such a text or run -> its own columns.
        spoken: column -> how its heading was read, as `S times 1e6`, where it is none of our names.
    """

    named: dict[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    times: dict[str, Decimal] = field(default_factory=dict)
    apart: str = ""
    parts: dict[str, "Columns"] = field(default_factory=dict)
    spoken: dict[str, str] = field(default_factory=dict)

    @property
    def wide(self) -> dict[str, int]:
        """The fields rbp_K with their k, in its order; empty where one column has RBP_k."""
        k_of = {name: int(found[1]) for name in self.named if (found := _WIDE.fullmatch(name))}
        return dict(sorted(k_of.items(), key=lambda of: of[1]))

    def shown(self, field: str, text: str | None = None, run: str | None = None) -> str:
        """The user's column for a field of one text or run; the field where there is none."""
        own = self.parts.get((run if self.apart == "runs" else text) or "")
        named = self.named | ({} if own is None else own.named)
        if field in named:
            return named[field]
        for other in _ONE_LOSS[1:]:
            column = named.get(field.replace("cross_entropy_nats", other))
            if column is not None:
                return f"{column} in nats"
        return next((self.named[name] for name in self.wide), field) if field == "rbp" else field

    @property
    def has_rbp(self) -> bool:
        """Whether there is RBP_k, which has a tie rule."""
        return "rbp" in self.named or bool(self.wide) or any(of.has_rbp for of in self.parts.values())

    @property
    def mapping(self) -> dict[str, str]:
        """Field, or TEXT: FIELD, or RUN: FIELD, -> column and factor, for provenance."""
        scaled = {name: f" times {shown(times)}" for name, times in self.times.items() if times != 1}
        own = {name: column + scaled.get(name, "") for name, column in self.named.items()}
        return own | {f"{name}: {key}": column for name, of in self.parts.items() for key, column in of.mapping.items()}


def match_columns(table: Rows, chosen: Mapping[str, Any], config: ImportConfig) -> Columns:
    """Map the columns of a file of observations as the user chose, else by name.

    A choice is field, by any of its names, or rbp_K -> column, or {column, times}.

    Raises:
        RbpxError: a choice of a field or column that does not exist, or all that is wrong with the columns.
    """
    file, columns, runs = table.path, table.columns, {name: run.columns for name, run in config.wide_runs.items()}
    apart, told = ("runs", runs) if runs else ("texts" if config.texts else "", config.texts or {})
    by_name = {plain(column): column for column in columns}
    own = _chosen(by_name, chosen, f"columns: {file}", tuple(RULES))
    fields = _OF_RUN if apart == "runs" else _OF_TEXTS
    parts = {name: _chosen(by_name, of, f"{apart}: {name}: {file}", fields) for name, of in told.items()}
    named, of_texts, problems = own.named, parts if apart == "texts" else {}, list[str]()
    elsewhere = (*_OF_TEXTS, *(of_kind("model") if apart == "runs" else ())) if apart else ()
    spoken = {column: how for of in (own, *parts.values()) for column, how in of.spoken.items()}
    used = {column for of in (own, *parts.values()) for column in of.named.values()}
    free = {name: column for name, column in by_name.items() if column not in used}
    for columns_of in (own, *of_texts.values()):  # the standard error of a chosen column is that beside it
        for name in of_kind("stderr"):
            beside = f"{plain(columns_of.named.get(name.removesuffix('_stderr'), ''))}_stderr"
            if name not in columns_of.named and beside in free:
                columns_of.named[name] = free.pop(beside)
    named |= {name: free.pop(name) for name in list(free) if _VARY.fullmatch(name)}
    unclear: dict[str, str] = {}
    for is_ours in (True, False):
        known = {*elsewhere, *(["rbp"] if own.wide else []), *(["perplexity"] if is_ours else [])}
        for name, rule in RULES.items():
            ranked = [] if name in named or name in known else _ranked(rule, free.values(), is_ours)
            found = [heading for rank, heading in ranked if rank == min(ranked)[0]]
            has_unit = bool(found) and read_heading(found[0])[1] is not None
            if len(found) > 1:
                both, which = " and ".join(map(repr, found)), typed(columns={rule.shown: "NAME"})
                unclear[name] = found[0]
                problems.append(f"{file}: {both} may both be {rule.shown}; say which: {which}")
            elif found and (is_ours or has_unit or not rule.unless & named.keys()):
                named[name] = free.pop(plain(found[0]))
                spoken |= {} if is_ours or has_unit else {named[name]: rule.means}
    for name, rule in RULES.items():
        factor = None if rule.least is None else read_heading(named.get(name, ""))[1]
        if factor is not None:
            spoken[named[name]] = f"{rule.shown} times {shown(own.times.setdefault(name, factor))}"
    if "rbp" not in chosen and not apart:
        named |= {name: free.pop(name) for name in list(free) if _WIDE.fullmatch(name)}
    parted = OF_ITEM if "n_correct" not in named or apart else ()
    parted += ("k", "n", "ties") if not apart and "rbp" not in named and not own.wide else ()
    free |= {plain(named[name]): named.pop(name) for name in parted if name in named}
    whole = replace(own, ignored=tuple(free.values()), apart=apart, parts=parts, spoken=spoken)
    problems += _wrong(whole, named | unclear, elsewhere, table)
    if not problems and whole.has_rbp and config.ties is None and "ties" not in named:
        problems.append(f"{file} has no column ties, so give ties=pessimistic, ties=optimistic or ties=mid")
    given = {"family": config.family, "dataset": config.dataset or config.texts}
    if missing := [name for name, of in given.items() if not of and name not in {*by_name, *map(plain, chosen)}]:
        both = " and ".join(missing)
        are = "are missing; add columns" if len(missing) > 1 else "is missing; add a column"
        problems.append(f"{file}: the {both} {are} {both}, or give {' '.join(f'{name}=NAME' for name in missing)}")
    refuse(problems, len(problems), file)
    return whole


def _wrong(whole: Columns, named: Mapping[str, str], elsewhere: Sequence[str], table: Rows) -> Iterator[str]:
    """What is wrong with the columns of observations; fields `elsewhere` are of the texts or runs that stand apart."""
    file, columns, apart = table.path, table.columns, whole.apart
    texts = whole.parts if apart == "texts" else {}
    for text, of in texts.items():
        yield from _unread(of.named, columns, (), f"texts: {text}: {file}")
    if not apart:
        yield from _unread(named, columns, whole.ignored, f"{file}")
    twice = (*(("dataset", "text_hash") if texts else ()), *elsewhere, *whole.wide)
    doubled = next((name for name in twice if name in whole.named), None) if apart else None
    if doubled is not None:
        name = "rbp" if doubled in whole.wide else doubled
        yield f"{apart}: {file} would read its {name} twice; name it in {apart}= or columns=, not both"
    if apart != "runs" and "non_embedding_params" not in named:
        near = next((column for column in whole.ignored if misspelt(column) == "S"), "NAME")
        yield (
            f"{file} has no column S, the parameters without embeddings, nor non_embedding_params; it has: "
            f"{', '.join(columns)}; name it with {typed(columns={'S': near})}, or S=6.5B of a file of one model"
        )


def _ranked(rule: Rule, headings: Iterable[str], is_ours: bool) -> list[tuple[int, str]]:
    """The headings that name a field in our words, or as people write it, each with its rank."""
    ranks = ((rank_of(rule, heading), heading) for heading in headings)
    return [(rank, heading) for rank, heading in ranks if rank is not None and (rank < 0 or not is_ours)]


def _of_run(by_name: Mapping[str, str], column: str) -> str:
    """The column of a run: of that name, or the only one named `NAME - val/loss` or the like."""
    if plain(column) in by_name:
        return column
    logged = [each for name, each in by_name.items() if name.startswith(f"{plain(column)} - ")]
    logged = [each for each in logged if not _DERIVED.fullmatch(each)]
    if len(logged) > 1:
        raise RbpxError(f"runs: {column} may be {' or '.join(map(repr, logged))}; say which with its column")
    return logged[0] if logged else column


def _chosen(by_name: Mapping[str, str], chosen: Mapping[str, Any], where: str, fields: Sequence[str]) -> Columns:
    """The columns that were chosen for fields, and for RBP at single k, with their factors."""
    of = Columns()
    for name, told in chosen.items():
        column, factor = choice_of(told)
        column = _of_run(by_name, column) if fields == _OF_RUN else column
        if plain(column) not in by_name:
            raise RbpxError(f"{where} has no column {column!r} for {name}; it has: {', '.join(by_name.values())}")
        is_own = _WIDE.fullmatch(name) or ("variant" in fields and _VARY.fullmatch(name))  # of a run, not its texts
        meant = name if is_own else field_of(name, fields)
        if meant is None:
            known = ", ".join(RULES[field].shown for field in fields)
            raise RbpxError(f"{where}: {name} is not a field of an observation; known: {known}, rbp_K, vary_NAME")
        if meant in of.named:
            raise RbpxError(f"{where}: {name} and {meant} are one field; choose one column for it")
        of.named[meant] = by_name[plain(column)]
        rule = rule_of(meant)
        if rule.means != meant and plain(name) not in rule.names:
            of.spoken[of.named[meant]] = rule.means
        if factor is not None:
            if rule.numbers is None:
                raise RbpxError(f"{where}: {name} takes no times, which is of one number; leave times out")
            of.times[meant] = factor
    return of


def _unread(named: Mapping[str, str], columns: Sequence[str], ignored: Iterable[str], file: str) -> Iterator[str]:
    """The first thing for which the values in the columns of one text cannot be read."""
    wide = next((column for name, column in named.items() if _WIDE.fullmatch(name)), None)
    normalised = next((column for column in ignored if _OTHERWISE.fullmatch(plain(column))), None)
    losses = ((name, named.get(name, "")) for name in ("cross_entropy_nats", "loss_bits", "bits_per_byte"))
    perplexity = next((of for of in losses if rank_of(RULES["perplexity"], of[1]) is not None), None)
    same = [*combinations(map(named.get, _ONE_LOSS), 2), (wide, named.get("rbp", named.get("k")))]
    both = next((pair for pair in same if None not in pair), None)
    needs = (*_NEEDS, *([("rbp", "n")] if plain(named.get("rbp", "")) in _OF_WINDOWS else []))
    lacks = next(((named[name], needed) for name, needed in needs if name in named and needed not in named), None)
    if perplexity is not None:
        name, column = perplexity
        how = typed(columns={"perplexity": column})
        yield f"{file}: column {column!r} is no {RULES[name].shown}; a perplexity of a token is read by {how}"
    elif not {*QUANTITIES, "n_correct", "rbp"} & named.keys() and wide is None and normalised is not None:
        kept = typed(columns={f"vary_{re.sub('[^a-z0-9]+', '_', plain(normalised))}": normalised})
        yield f"{file}: column {normalised!r} is no loss per token or byte; keep it with {kept}, beside one that is"
    elif not {*QUANTITIES, "n_correct", "rbp"} & named.keys() and wide is None:
        near = {misspelt(column): column for column in ignored}
        quantity = next((RULES[each].shown for each in QUANTITIES if RULES[each].shown in near), "rbp")
        yield (
            f"{file} has no column rbp, nor rbp_1, rbp_10, ..., nor loss_nats, loss_bits, perplexity, bits_per_byte or "
            f"accuracy, nor n_correct of n_samples attempts at an item; it has: {', '.join(columns)}; name it with "
            f"{typed(columns={quantity: near.get(quantity, 'NAME')})}, or {typed(texts=_TEXTS)}"
        )
    elif both is not None:
        yield f"{file} has both {both[0]!r} and {both[1]!r}, which say the same of a row; leave one out"
    elif lacks is not None:
        yield (
            f"{file} has {lacks[0]!r}, but no column {lacks[1]}; it has: {', '.join(columns)}; add it, or name it with "
            f"{typed(columns={lacks[1]: 'NAME'})}"
        )
