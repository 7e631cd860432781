"""An error of Hydra or OmegaConf in, one line for the user out: what is wrong, and what there is instead."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rbpx.config.imports import ImportConfig
from rbpx.config.model.family import ModelConfig
from rbpx.config.model.placement import UNFIT, EngineConfig
from rbpx.config.options import did_you_mean, near
from rbpx.config.overrides import config_folders
from rbpx.config.places import GROUPS, options
from rbpx.config.request import KEYS, Asking
from rbpx.config.text.dataset import DatasetConfig, ProtocolConfig

_GROUPS: dict[str, Any] = {
    "model": ModelConfig,
    "dataset": DatasetConfig,
    "protocol": ProtocolConfig,
    "engine": EngineConfig,
}


_EXAMPLES = {
    "model": "model=pythia",
    "dataset": "dataset=pydoc",
    "protocol": "protocol=rolling",
    "engine": "engine=vllm",
}


_LISTED = ("size", "k", "n", "S", "laws", "method", "family", "analyses")  # keys that one list may be given to


_NAMED_BY = {"model": "family=", "dataset": "dataset=file dataset.name="}  # for names without a file in conf/


def explain(problem: Exception, asking: Asking, overrides: Sequence[str], held: Sequence[str] = ()) -> str:
    """One line for an error of Hydra or OmegaConf: what is wrong, and what there is instead.

    Args:
        problem: what they raised.
        asking: what the verb can be asked.
        overrides: as typed.
        held: names of the datasets in the store that a question is asked of.
    """
    text = str(problem)
    missing = re.search(r"Could not find '(\w+)/([^']*)'", text)
    if missing:
        return _unknown_option(missing[1], missing[2], asking.primary, held, overrides)
    if "Config group override must be a string" in text:
        groups = (re.fullmatch(rf"\+?({'|'.join(GROUPS)})=([^\"'].*)", each) for each in overrides)
        for name, value in ((each[1], value) for each in groups if each for value in each[2].split(",")):
            if value == "null":
                return _null(name)
            if re.fullmatch(r"[-+.\d].*|true|false|nan|inf", value, re.IGNORECASE):
                return f"{name}={value} was read as a number; quote it to keep it as typed: '{name}=\"{value}\"'"
    if "Unexpected type for root: NoneType" in text:
        return _needs_group(overrides)
    inner = re.search(r"Key '([^']+)' not in 'ImportConfig'", f"{text} {problem.__cause__}")
    if inner:
        known = ", ".join(ImportConfig.__dataclass_fields__)
        return f"{inner[1]} is not a key of an import; known: {known}; see python -m rbpx import --help"
    deleted = re.search(r"Could not delete from config. '([^']+)' does not exist", text)
    if deleted:
        return f"~{deleted[1]} deletes what is not there; drop it, and see python -m rbpx --help"
    deleted = re.search(r"Error merging override (~\S+)", text)
    if deleted:
        return undeletable(deleted[1])
    key = re.search(r"Could not override '([^']+)'|Key '([^']+)' (?:is )?not in", text)
    if key:
        return unknown_key(next(k for k in key.groups() if k), asking)
    ambiguous = re.search(r"Ambiguous value for argument '([^']+)'", text)
    if ambiguous:
        name, _, values = ambiguous[1].partition("=")
        sweep = f"sweep with -m {name}={values}"
        if name in _LISTED:
            return f"{name}={values} are several values; for one list write {name}='[{values}]', or {sweep}"
        return f"{name}={values} are several values; {sweep}, or quote it: '{name}=\"{values}\"'"
    typed = getattr(problem, "override", None)  # the one that Hydra's grammar does not allow
    if typed is not None:
        name, _, value = typed.partition("=")
        if re.fullmatch(r"\[[^\]]*", value):
            return f"{typed} has no ] at its end; write {name}='{value}]'"
        return f"{typed} cannot be read; quote such characters: 'key=\"value\"'"
    override = re.search(r"Error merging override \+*([^=\s]+)=(.*)", text)
    if override and override[2].startswith("null"):
        return _null(override[1])
    whole = f"{problem.__cause__ or ''}\n{text}"
    wrong = re.search(r"Invalid value '(.*)', expected one of \[(.*)\]", whole)
    if override and wrong:
        hint = did_you_mean(wrong[1], wrong[2].split(", "))
        return f"{override[1]}={wrong[1]} is unknown; {hint}known: {wrong[2]}"
    kind = re.search(r"Value '([^']*)' .*could not be converted to (Integer|Float)", whole)
    if override and kind:
        number = "whole number" if kind[2] == "Integer" else "number"
        return f"{override[1]}={kind[1]} is not a {number}; give one in digits, as in {override[1]}=100"
    kind = re.search(r"Value '(.*)' is not a valid bool", whole)
    if override and kind:
        return f"{override[1]}={kind[1]} is neither true nor false; write {override[1]}=true"
    lines = [str(problem.__cause__ or ""), text]  # Hydra names the override, OmegaConf below it says what is wrong
    kept = [part.strip() for whole in reversed(lines) for part in whole.split("\n") if part.strip()]
    line = "; ".join(dict.fromkeys(part for part in kept if not part.startswith(("object_type", "full_key"))))
    return f"{line.replace('Error merging override ', '')[:300]}; see python -m rbpx --help"


def _null(key: str) -> str:
    return f"{key}=null is no value; give one, or leave it out for its default"


def _needs_group(overrides: Sequence[str]) -> str:
    """A key of a group, such as model.bos, where no model is named."""
    named = {override.partition("=")[0].lstrip("+~") for override in overrides}
    for override in overrides:
        group = override.lstrip("+~").partition(".")[0]
        if group in _GROUPS and group not in named:
            return f"{override} is a key of a {group}, and none is named; add {group}=NAME, as in {_EXAMPLES[group]}"
    return f"a key of {' '.join(overrides)} belongs to a group that is not named; see python -m rbpx --help"


def _unknown_option(group: str, option: str, primary: str, held: Sequence[str], overrides: Sequence[str]) -> str:
    known = options(group, config_folders(overrides))
    if group == "dataset" and held:
        hint = did_you_mean(option, [*held, *known])
        return f"dataset={option} is unknown; {hint}the store holds {', '.join(held)}; known: {', '.join(known)}"
    if group == "engine" and option in UNFIT:
        return f"engine={option} cannot measure: {UNFIT[option]}; known: {', '.join(known)}"
    hint = did_you_mean(option, known)
    if group == "dataset" and (Path(option).suffix or "/" in option):
        hint = f"a file of yours is dataset=file dataset.path={option}; "
    elif group == "model" and "/" in option:
        hint = f"a checkpoint of the hub, or a folder, is model=hub model.id={option}; "
    own = f"; your own go into {group}/NAME.yaml of a folder given with --config-dir"
    if group in _NAMED_BY and primary == "analyse":
        own += f"; what the store holds by another name is {_NAMED_BY[group]}{option}"
    return f"{group}={option} is unknown; {hint}known: {', '.join(known)}{own}"


def undeletable(override: str) -> str:
    """One line for a key that is deleted, and that a request has all the same."""
    key = override[1:].partition("=")[0]
    return f"{override} deletes a key that every request has; leave it out for its default, or set {key}="


def unknown_key(key: str, asking: Asking) -> str:
    """One line for a key that a verb does not have, with the one that may have been meant."""
    group, _, inner = key.partition(".")
    known = [name for name in asking.names if name != "plain"]
    if inner and group in _GROUPS and group in known:
        known = [f"{group}.{name}" for name in _GROUPS[group].__dataclass_fields__]
    if key == "dataset.where" and asking.primary == "measure":
        return f"{key} is a mapping that can be changed but not added to; put yours into a file given with --config-dir"
    if key in known:  # Hydra takes it for a group of files
        return f"{key}= cannot be given while --config-dir holds a folder {key}/; keep that folder elsewhere"
    meant = near(key, known)
    hint = f"did you mean {meant}?" if meant is not None else f"its keys: {', '.join(known)}."
    if key in KEYS:
        hint = f"it is a key of other verbs; {hint}"
    return f"{asking.verb} has no key {key}; {hint} See python -m rbpx {asking.verb} --help"
