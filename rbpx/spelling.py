"""Writes keys in advice as their user types them: as a command line, or as Python."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_spoken = ["python"]


@contextmanager
def speaking_shell() -> Iterator[None]:
    """Writes advice as a command line for the duration of the block."""
    _spoken.append("shell")
    try:
        yield
    finally:
        _spoken.pop()


def speaks_shell() -> bool:
    """Whether advice is written as a command line; to pass on to another process."""
    return _spoken[-1] == "shell"


def typed(verb: str = "", keys: Mapping[str, Any] | None = None, **more: Any) -> str:
    """Keys with values, behind their verb if there is one.

    On a command line `k='[1,10]' dataset=pydoc` and `python -m rbpx fit k=1`, in Python `k=[1, 10], dataset="pydoc"`
    and `.fit(k=1)`. `keys` are those whose names have a dot.
    """
    each = {**(keys or {}), **more}
    if speaks_shell():
        words = [f"{name}={_in_shell(value)}" for name, value in each.items()]
        return " ".join(["python -m rbpx", verb, *words] if verb else words)
    plain = [f"{name}={_in_python(value)}" for name, value in each.items() if "." not in name]
    dotted = [f'"{name}": {_in_python(value)}' for name, value in each.items() if "." in name]
    told = ", ".join([*plain, *([f"**{{{', '.join(dotted)}}}"] if dotted else [])])
    return f".{verb}({told})" if verb else told


def help_of(verb: str) -> str:
    """The command that explains a verb."""
    return f"python -m rbpx {verb} --help" if speaks_shell() else f"help(rbpx.Measurements.{verb})"


def _in_shell(value: Any) -> str:
    text = _of_hydra(value)
    return f'"{text}"' if "'" in text and not set(text) & set('"$`\\!') else shlex.quote(text)


def _of_hydra(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_inner, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {_inner(each)}' for name, each in value.items())}}}"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return _of_number(value)


def _inner(value: Any) -> str:
    """Writes an element of a list or a mapping, quoted if it has signs of Hydra's grammar."""
    text = _of_hydra(value)
    return json.dumps(text) if isinstance(value, str) and not re.fullmatch(r"[\w .+-]+", text) else text


def _in_python(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_in_python, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_in_python(name)}: {_in_python(each)}' for name, each in value.items())}}}"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else _of_number(value)


def _of_number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
