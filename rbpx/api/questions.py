"""Makes every question a method of an open store, which takes the question's keys and returns its answer.

The methods are made from the folders of the questions; `make signatures` writes their types to questions.pyi.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rbpx.api.answer import Answer
from rbpx.api.keywords import MEASURING, explained, requests, signature
from rbpx.errors import MeasureError
from rbpx.questions.ask import answer
from rbpx.questions.registry import REMOVED, analyses, analysis, asking, question, refuse_removed
from rbpx.questions.render import detailed_rows, plain_rows
from rbpx.questions.result import Result
from rbpx.store.messages import collected_messages


@dataclass(frozen=True)
class Questions:
    """The questions to a store."""

    store: str
    config_dir: Path | None = None

    def _answer(self, verb: str, keys: Mapping[str, Any]) -> Answer[Result]:
        grids = [(request, None) for request in requests(asking(verb), keys, self.store, self.config_dir)]
        asked = question(verb)
        with collected_messages() as messages:
            if asked.remeasure is not None:
                again = [asked.remeasure(request) for request, _ in grids]
                for failure in (failure for _, measured in again for failure in measured.failures):
                    raise MeasureError(f"{failure.cell} failed: {failure.error}")
                results = [result for found, _ in again for result in found]
            else:
                results = answer(verb, grids)
        return Answer(
            verb, tuple(results), tuple(plain_rows(verb, results)), tuple(messages), tuple(detailed_rows(results))
        )

    def measure(self, **keys: Any) -> Answer[Any]:
        """Measures every cell of a grid that the store does not hold yet, as the verb does, but prints nothing.

        Models and datasets have the defaults of the command line; lists of them are a sweep, which loads each model
        once. The rows of the answer are the cells of the grid that the store now holds, with their runs; a cell that
        failed is a row with its error.

        Raises:
            RbpxError: the request is wrong.
            MeasureError: a text is not available, or every cell failed.
        """
        from rbpx.api.measuring import measure

        asked = requests(MEASURING, keys, self.store, self.config_dir)
        with collected_messages() as messages:
            results, rows = measure(asked)
        return Answer("measure", tuple(results), tuple(rows), tuple(messages))


def _method(verb: str) -> Callable[..., Answer[Result]]:
    described = analysis(verb)

    def ask(self: Questions, **keys: Any) -> Answer[Result]:
        return self._answer(verb, keys)

    ask.__name__, ask.__qualname__ = verb, f"Measurements.{verb}"
    ask.__doc__ = (
        f"{described.summary[:1].upper()}{described.summary[1:]}.\n\n{described.help}\n\n"
        f"Args:\n{explained(asking(verb))}\n"
    )
    ask.__signature__ = signature(asking(verb))  # type: ignore[attr-defined]
    return ask


def _refusal(verb: str) -> Callable[..., None]:
    """Returns a method that names the replacement of a removed question."""

    def ask(self: Questions, *words: Any, **keys: Any) -> None:
        refuse_removed(verb)

    return ask


Questions.measure.__doc__ = f"{Questions.measure.__doc__}\nArgs:\n{explained(MEASURING)}\n"
Questions.measure.__signature__ = signature(MEASURING)  # type: ignore[attr-defined]
for _verb in (name for name in REMOVED if name.isidentifier()):
    setattr(Questions, _verb, _refusal(_verb))
for _verb in analyses():
    setattr(Questions, _verb, _method(_verb))
