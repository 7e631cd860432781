"""Explains an error of Hydra or OmegaConf in one line, with the name that was probably meant."""

import re
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, get_type_hints

from rbpx.config.folders import GROUPS, options
from rbpx.config.model.placement import UNFIT
from rbpx.config.options import did_you_mean
from rbpx.config.request import KEYS, Asking
from rbpx.spelling import help_of, speaks_shell, typed

_GONE: Final = {
    "fresh": "nothing, as every answer is computed",
    "budgets": "flops=, a budget or a list",
    "over": "frontier=true, the best run of each size and number of tokens, where a column says what was varied",
    "study.file": "an import of that file (imports), of which the analyses are asked",
    "T": "imported counts of samples at that temperature, columns item, n_samples and n_correct",
    "warm_up": "where='step >= N' on import, and fit axis=D, which has laws along training",
}  # removed keys, and what answers now
_MISREAD: Final = {
    r"Value '(.*)' of type '.*' could not be converted to Integer": "is not a whole number; give one",
    r"Value '(.*)' of type '.*' could not be converted to Float": "is not a number; give one",
    r"Value '(.*)' is not a valid bool": "is neither true nor false; give one of them",
    r"is not a subclass of .* value: (.*)": "is not one name; give one, or leave it out",
    r"field '.*' is not Optional": "is no value; give one, or leave it out for its default",
}  # what OmegaConf says, and what we do
_EXAMPLES: Final = {"dataset": "dataset=file dataset.path={}", "model": "model=hub model.id={}"}  # of a path or an id


def explain(problem: Exception, asking: Asking, words: Sequence[str], own: Sequence[Path]) -> str:
    """One line for an error of a configuration."""
    text = f"{problem}\n{problem.__cause__ or ''}"
    full = re.search(r"full_key: (\S+)", text)
    missing = re.search(r"Could not find '(\w+(?:/launcher|/sweeper)?)/([^']*)'", text)
    if missing:
        return _unknown_option(missing[1], missing[2], own)
    key = re.search(r"Could not override '\+*([^']+)'|Key '([^']+)' (?:is )?not in", text)
    if key:
        name = full[1] if full else key[1] or key[2]
        if re.search(r"(^|@)experiment\b", name):
            study = next((word.partition("=")[2] for word in words if "experiment=" in word), "")
            if study not in options("experiment", own):
                return _unknown_option("experiment", study, own)
            return (
                f"experiment={study}: its file sets keys below experiment; begin it with the line # @package _global_"
            )
        return unknown_key(name, asking)
    several = re.search(r"Ambiguous value for argument '([^'=]+)=([^']*)'", text)
    if several:
        name, values = several.groups()
        listed = f"a list is {typed(keys={name: values.split(',')})}, " if _takes_list(name, asking) else ""
        return f"{name}={values} are several values; {listed}a sweep -m {name}={values}"
    unknown = re.search(r"Invalid value '(.*)', expected one of \[(.*)\]", text)
    if full and unknown:
        value, known = unknown.groups()
        return f"{full[1]}={value} is unknown; {did_you_mean(value, known.split(', '))}known: {known}"
    for said, told in _MISREAD.items():
        misread = re.search(said, text)
        if full and misread:
            return f"{full[1]}={[*misread.groups(), 'null'][0]} {told}"
    if "Unexpected type for root: NoneType" in text:
        groups = {each: each.lstrip("+").partition(".")[0] for each in words if re.match(r"\+?\w+\.", each)}
        unnamed = {key: of for key, of in groups.items() if not any(word.startswith(f"{of}=") for word in words)}
        word, group = next(iter((unnamed or groups).items()), ("a key", "GROUP"))
        if word.partition("=")[0] in _GONE:
            return unknown_key(word.partition("=")[0], asking)
        named = "experiment" if group == "study" else group
        return f"{word} is a key of {group}, and none is named; add {named}=NAME"
    lines = [
        line.strip().removeprefix("Error merging override ")
        for line in text.split("\n")
        if line.strip() and not re.match(r"\s*(object_type|reference_type)", line)
    ]
    return "; ".join(dict.fromkeys(lines))[:300] + f"; see {help_of(asking.verb)}"


def _takes_list(name: str, asking: Asking) -> bool:
    group, _, inner = name.partition(".")
    of_group = KEYS[group].group if inner and group in KEYS else None
    kind = get_type_hints(of_group or asking.schema()).get(inner or group)
    return kind is Any or "list[" in str(kind) or (asking.narrows and name in GROUPS)


def unread(word: str) -> str:
    """One line for a word that Hydra's grammar does not read."""
    key = word.partition("=")[0]
    as_text = f"{key}='\"...\"'" if speaks_shell() else f'{key}="..."'
    return f"{word} cannot be read: close each bracket and quote, or quote all of a text that has one: {as_text}"


def unknown_key(key: str, asking: Asking) -> str:
    """One line for a key that a verb does not have, with the one that was probably meant."""
    group, _, inner = key.partition(".")
    inside = KEYS[group].group if inner and group in KEYS else None
    known = (
        [name for name, each in asking.keys.items() if each.help]
        if inside is None
        else [f"{group}.{each.name}" for each in fields(inside)]
    )
    if key in _GONE and key not in known:
        return f"{asking.verb} has no key {key} any more; in its place: {_GONE[key]}"
    hint = did_you_mean(key, known) or ("" if inner else f"its keys: {', '.join(known)}. ")
    other = "it is a key of other verbs; " if key in KEYS else ""
    return f"{asking.verb} has no key {key}; {other}{hint}see {help_of(asking.verb)}"


def _unknown_option(group: str, option: str, own: Sequence[Path]) -> str:
    if group.startswith("hydra/"):
        return f"{group}={option} is unknown; pip install hydra-{option}-{group.removeprefix('hydra/')}, or drop it"
    known = options(group, own)
    hint = f"{UNFIT[option]}; " if group == "engine" and option in UNFIT else did_you_mean(option, known)
    if group in _EXAMPLES and (Path(option).suffix or "/" in option):
        hint = f"one of your own is {_EXAMPLES[group].format(option)}; "
    elif group == "model" and not hint:
        hint = f"to measure your own, name its checkpoints: model=hub model.id='[A,B]' model.family={option}; "
    return f"{group}={option} is unknown; {hint}known: {', '.join(known)}, and {group}/NAME.yaml in --config-dir"
