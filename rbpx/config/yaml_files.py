"""A YAML file in, its values out: within bounds, so that no file can take long to read or stand for more than it says.

Aliases may stand for other aliases, so that a few lines can stand for more values than there are atoms: values are
counted as they would be after all aliases were replaced, from the events of the parser, before anything is built.
"""

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from rbpx.errors import RbpxError

LARGEST: Final = 200_000  # characters; the largest file of rbpx has 8,000
DEEPEST: Final = 40  # mappings and lists in each other
MOST_VALUES: Final = 50_000  # after aliases are replaced by what they stand for
_PLAIN_TAGS: Final = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "seq", "map")}


def load_yaml(path: Path) -> Any:
    """The configuration in a YAML file, as OmegaConf holds it.

    Raises:
        RbpxError: it cannot be read, is not YAML, exceeds a bound, or has tags.
    """
    import yaml
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    text = read_yaml(path)
    try:
        return OmegaConf.create(_values(text))
    except (yaml.YAMLError, OmegaConfBaseException, ValueError, TypeError) as problem:
        raise RbpxError(not_yaml(path, problem)) from None


@lru_cache(maxsize=128)  # for each job of a sweep Hydra reads every file again
def _values(text: str) -> Any:
    from omegaconf import OmegaConf

    return OmegaConf.to_container(OmegaConf.create(text)) if text.strip() else {}


def read_yaml(path: Path) -> str:
    """The text of a YAML file, once it was seen to be within bounds.

    Raises:
        RbpxError: it cannot be read, is not YAML, exceeds a bound, or has tags.
    """
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(LARGEST + 1)
    except (OSError, ValueError) as problem:
        raise RbpxError(not_yaml(path, problem)) from None
    check_yaml(text, str(path))
    return text


@lru_cache(maxsize=128)
def check_yaml(text: str, place: str) -> None:
    """Refuse YAML that would take long to read, or that asks for more than values.

    Args:
        text: of the file.
        place: the file, for errors.

    Raises:
        RbpxError: it is not YAML, too long, too deep, its aliases stand for too much or for themselves, or it has tags.
    """
    import yaml

    if len(text) > LARGEST:
        raise RbpxError(f"{place} is longer than {LARGEST:,} characters, which no configuration needs; shorten it")
    sizes: dict[str, int] = {}  # anchor -> values that it stands for; those still open are missing
    open_nodes: list[tuple[str | None, int]] = []  # anchor, values so far
    try:
        events: Iterator[Any] = yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        for event in events:
            where = f"{place}, line {event.start_mark.line + 1}"
            anchor, size = getattr(event, "anchor", None), 1
            if isinstance(event, yaml.AliasEvent):
                if anchor not in sizes:
                    raise RbpxError(f"{where}: *{anchor} stands for nothing before it, or for itself; write it out")
                size = sizes[anchor]
            tag = getattr(event, "tag", None)
            if tag not in (None, "!", *_PLAIN_TAGS):
                raise RbpxError(f"{where}: the tag {_tag(str(tag))} is not known; write a plain value without a tag")
            is_empty = isinstance(event, yaml.ScalarEvent) and not event.value
            if isinstance(event, yaml.NodeEvent) and not open_nodes and not is_empty:
                if not isinstance(event, yaml.MappingStartEvent):
                    raise RbpxError(f"{where}: a mapping of keys to values is expected; write KEY: VALUE")
            if isinstance(event, yaml.CollectionStartEvent):
                open_nodes.append((anchor, 1))
                if len(open_nodes) > DEEPEST:
                    raise RbpxError(f"{where}: nested deeper than {DEEPEST} levels; write it flatter")
                continue
            if isinstance(event, yaml.CollectionEndEvent):
                anchor, size = open_nodes.pop()
            elif not isinstance(event, yaml.NodeEvent):
                continue
            if anchor is not None and not isinstance(event, yaml.AliasEvent):
                sizes[anchor] = size
            if size > MOST_VALUES:
                raise RbpxError(f"{where}: its aliases stand for more than {MOST_VALUES:,} values; write it out")
            if open_nodes:
                open_nodes[-1] = open_nodes[-1][0], open_nodes[-1][1] + size
    except (yaml.YAMLError, ValueError) as problem:
        raise RbpxError(not_yaml(Path(place), problem)) from None


def not_yaml(path: Path, problem: Exception) -> str:
    """One line for a file that is not YAML."""
    mark = getattr(problem, "problem_mark", None)
    where = str(path) if mark is None else f"{path}, line {mark.line + 1}"
    reason = getattr(problem, "problem", None) or getattr(problem, "strerror", None) or problem
    return f"{where} cannot be read as YAML: {' '.join(str(reason).split())[:200]}; correct the file"


def _tag(tag: str) -> str:
    return tag.replace("tag:yaml.org,2002:", "!!")
