"""The Python interface: rbpx and rbpx.laws in, their signatures, fields and first paragraphs of docstrings out."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Final

import rbpx
import rbpx.laws
from ext.markdown import name, plain
from rbpx.api.measurements import measure
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.power.law import PowerLaw
from rbpx.laws.power.predicted import Prediction
from rbpx.laws.ranks.family import RankFit
from rbpx.laws.surface.fit import Surface
from rbpx.laws.surface.surface import Optimum

_METHODS: Final[Mapping[type, tuple[str, ...]]] = {
    rbpx.Measurements: ("sql", "frame", "observations", "measure", "report", "export"),
    rbpx.Answer: ("show", "frame", "arrow", "tables", "plot"),
    rbpx.Store: ("runs", "sql", "records", "write_run"),
    PowerLaw: ("predict", "record"),
    Surface: ("predict", "optimum", "record"),
}
_RETURNED: Final = (PowerLaw, Surface, Optimum, Prediction, RankFit, Estimate)


def package() -> str:
    """What `rbpx` has."""
    functions = [_function("rbpx.open", rbpx.open), _function("rbpx.measure", measure)]
    classes = [_class(f"rbpx.{kind.__name__}", kind) for kind in (rbpx.Measurements, rbpx.Answer, rbpx.Store)]
    errors = [f"- {name(f'rbpx.{kind.__name__}')}: {_first(kind)}" for kind in (rbpx.RbpxError, rbpx.MeasureError)]
    return "\n".join([*functions, *classes, *errors])


def laws() -> str:
    """What `rbpx.laws` has, and what its functions return."""
    functions = [_function(f"rbpx.laws.{each}", getattr(rbpx.laws, each)) for each in rbpx.laws.__all__]
    return "\n".join([*functions, "\nWhat they return:\n", *(_class(kind.__name__, kind) for kind in _RETURNED)])


def _function(called: str, function: Callable[..., Any], indent: str = "") -> str:
    """A function with its arguments; the keys of a verb stand on its page."""
    known = [each for each in inspect.signature(function).parameters.values() if each.name != "self"]
    if known and known[-1].kind is inspect.Parameter.VAR_KEYWORD:
        known = [each for each in known if each.kind is not inspect.Parameter.KEYWORD_ONLY]
    arguments = inspect.Signature([each.replace(annotation=each.empty, default=_given(each)) for each in known])
    return f"{indent}- {name(f'{called}{arguments}')}: {_first(function)}"


def _given(argument: inspect.Parameter) -> Any:
    return argument.default.value if isinstance(argument.default, Enum) else argument.default


def _class(called: str, kind: type) -> str:
    """A class with its fields and those of its methods that people call."""
    fields_of = [each.name for each in fields(kind) if not each.name.startswith("_")] if is_dataclass(kind) else []
    having = f" Fields: {', '.join(map(name, fields_of))}." if fields_of else ""
    methods = [_function(f".{method}", getattr(kind, method), "  ") for method in _METHODS.get(kind, ())]
    return "\n".join([f"- {name(called)}: {_first(kind)}{having}", *methods])


def _first(documented: Any) -> str:
    """The first paragraph of a docstring."""
    return plain(str(inspect.getdoc(documented)).split("\n\n")[0])
