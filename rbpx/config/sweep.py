"""The requests of a sweep, one for each combination of its lists: composed from its options, not anew for each job.

Hydra composes every job of a sweep twice, 0.25 s in all, so that 500 jobs would wait two minutes for the first cell.
Here each option of a group (`model=`, `dataset=`, `protocol=`) is composed once, and the values of a job are set in
what its options make.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import product
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rbpx.config.compose import composed, explained, request_of, with_groups
from rbpx.errors import RbpxError

_GROUPS = ("model", "dataset", "protocol")
_PRIMARIES = ("measure", "analyse", "audit")


def composes(primary: str, overrides: Sequence[str]) -> bool:
    """Whether a sweep can be composed here: its options are independent of each other, and it asks nothing of Hydra."""
    flags = {override for override in overrides if override.startswith("-")}
    values = [override for override in overrides if override not in flags]
    plain = all(value[0] not in "+~" and "@" not in value.partition("=")[0] and "${" not in value for value in values)
    named = any(value.startswith(("experiment=", "hydra")) for value in values)
    return bool(flags) and flags <= {"-m", "--multirun"} and primary in _PRIMARIES and plain and not named


def sweep(
    primary: str, overrides: Sequence[str], held: Sequence[str] = (), trusts: bool = False
) -> list[Callable[[], Any]]:
    """A function for each job of a sweep that returns its request, or raises what is wrong with its values.

    Args:
        primary: the file of conf/ that they begin from.
        overrides: as typed, with -m; `composes` has to hold for them.
        held: names of the datasets in the store.
        trusts: whether files of the user may name code.

    Raises:
        RbpxError: the overrides of a job name something that does not exist or has the wrong type.
    """
    with explained(primary, overrides, held):
        jobs = _jobs([override for override in overrides if not override.startswith("-")])
        sweeper = _Sweeper(primary, jobs, held, trusts)
        return [sweeper.read_request(job) for job in jobs]


def _jobs(values: Sequence[str]) -> list[list[str]]:
    """The overrides of each job: the last key changes from job to job, as in Hydra's own sweeps."""
    from hydra.core.override_parser.overrides_parser import OverridesParser

    choices: dict[str, list[str]] = {}
    for override in OverridesParser.create().parse_overrides(list(values)):
        key = override.get_key_element()
        if override.is_sweep_override():
            choices[key] = [f"{key}={value}" for value in override.sweep_string_iterator()]
        else:
            choices[key] = [f"{key}={override.get_value_element_as_str()}"]
    return [list(job) for job in product(*choices.values())]


class _Sweeper:
    """One configuration, in which the options and values of each job are set in turn: all jobs have the same keys."""

    def __init__(self, primary: str, jobs: Sequence[Sequence[str]], held: Sequence[str], trusts: bool) -> None:
        from hydra.core.override_parser.overrides_parser import OverridesParser

        self._compose = partial(composed, primary, held=held, trusts=trusts)
        self._primary = primary
        self._parse = cache(OverridesParser.create().parse_override)
        self._config: Any = None
        self._shown: list[str] = []
        self._options = self._independent_options(jobs) if jobs else {}

    def read_request(self, job: Sequence[str]) -> Callable[[], Any]:
        """A function that returns the request of a job."""
        config = self._configure(job)
        try:
            request = request_of(config, self._primary)
        except RbpxError as problem:
            return partial(_raise, problem)
        return lambda: request

    def _independent_options(self, jobs: Sequence[Sequence[str]]) -> dict[str, Any]:
        """Each option of a group, as composed; none where one changes more than the node of its group."""
        first = with_groups(self._primary, jobs[0])
        groups = [word for word in first if _group_of(word)]
        base, options = self._compose(groups), dict[str, Any]()
        for word in dict.fromkeys(word for job in jobs for word in job if _group_of(word)):
            others = [other for other in groups if _group_of(other) != _group_of(word)]
            config = base if word in groups else self._compose([*others, word])
            if any(config.get(key) != base.get(key) for key in base if key != _group_of(word)):
                return {}
            options[word] = config.get(_group_of(word))
        return options

    def _configure(self, job: Sequence[str]) -> Any:
        """The configuration of a job."""
        values = [self._parse(word) for word in job if not _group_of(word)]
        chosen = [word for word in job if _group_of(word)]
        # Dictionaries would be merged with those of the job before.
        if any(isinstance(value.value(), dict) for value in values) or not set(chosen) <= self._options.keys():
            return self._compose(with_groups(self._primary, job))
        if self._config is None:
            self._config, self._shown = self._compose(with_groups(self._primary, job)), chosen
            return self._config
        for word in chosen:
            if word not in self._shown:
                self._config[_group_of(word)] = self._options[word]
        self._shown = chosen
        try:
            for value in values:
                OmegaConf.update(self._config, value.key_or_group, value.value(), merge=True)
        except OmegaConfBaseException:
            return self._compose(with_groups(self._primary, job))  # raises what is explained
        return self._config


def _group_of(word: str) -> str | None:
    """The group of which an override chooses an option; None where it sets a value."""
    key = word.partition("=")[0]
    return key if key in _GROUPS else None


def _raise(problem: RbpxError) -> None:
    raise problem
