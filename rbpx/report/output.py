"""Writes a report as a page, a text or a folder of figures."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rbpx.config.keys.output import Told
from rbpx.config.options import Format
from rbpx.display.vocabulary import in_bytes
from rbpx.errors import RbpxError, number_of
from rbpx.files.output import check_output, opened
from rbpx.spelling import typed
from rbpx.store.store import Store

if TYPE_CHECKING:
    from rbpx.questions.question import Grids
    from rbpx.questions.result import Result
    from rbpx.report.contents import Report


_LOGGER = logging.getLogger(__name__)
FORMATS: Final = (Format.html, Format.md, Format.tex, *(form for form in Format if form.is_figures))
INDEX: Final = "figures.md"  # index of a folder of figures
_MARKED_WITHIN: Final = 2048  # characters
_MARKS: Final = ('<meta name="generator" content="rbpx', "<!-- rbpx report", "% rbpx report")


def check(request: Told, verb: str = "report") -> None:
    """Refuses an output that cannot be written, before anything is fitted.

    Raises:
        RbpxError: the store does not exist, the format is not a report's, or the output exists and is not a report.
    """
    if verb == "report" and not Store(request.store).root.is_dir():
        raise RbpxError(f"store={request.store} does not exist; measure first, or name another ({typed(store='DIR')})")
    form, path = _place(request, verb)
    if verb != "report" and request.output is None and not form.is_figures:  # to stdout
        return
    is_folder = form.is_figures and path.suffix.lower() != f".{form.value}"
    written = path / INDEX if is_folder and path.is_dir() else path
    has_other = any(path.iterdir()) if path.is_dir() else path.is_file() and (is_folder or path.stat().st_size)
    if (is_folder or verb == "report") and has_other and not _is_ours(written):
        kind = "a folder of figures" if is_folder else "a report"
        raise RbpxError(f"output={path} exists and is not {kind} of rbpx; name another with output=, or move it away")
    check_output(str(written))


def write_report(grids: "Grids", narrowed: str) -> Path:
    """Gathers a report, `narrowed` by some overrides, and writes it; returns its path."""
    from rbpx.report.contents import gather

    request = grids[0][0]
    form, path = _place(request, "report")
    report = gather(grids, narrowed)
    if form.is_figures:
        _write_pictures(report, request)
        return path
    text = _text(form)(report)
    with opened(str(path)) as file:
        file.write(text)
    _LOGGER.info(f"report of {number_of(report.n_runs, 'run')} written to {path} ({in_bytes(len(text.encode()))})")
    return path


def write_answered(verb: str, results: "Sequence[Result]", request: Told) -> None:
    """Writes the answer to one question, texts to stdout unless a file is named."""
    from rbpx.report.one_question import answered

    report, (form, _) = answered(verb, results, request.store), _place(request, verb)
    if form.is_figures:
        _write_pictures(report, request)
        return
    with opened(request.output) as file:
        file.write(_text(form)(report))


def _write_pictures(report: "Report", request: Told) -> None:
    from rbpx.report.pictures import Look, write_pictures

    form, path = _place(request, report.verb or "report")
    n = write_pictures(report, form.value, path, INDEX, Look.of(request))
    _LOGGER.info(f"{number_of(n, 'figure')} written to {path}")


def _text(form: Format) -> "Callable[[Report], str]":
    if form is Format.html:
        from rbpx.report.page import page

        return page
    from rbpx.report.texts import latex, markdown

    return markdown if form is Format.md else latex


def _place(request: Told, verb: str) -> tuple[Format, Path]:
    form = Format.html if request.format is Format.table else request.format
    if form not in FORMATS:
        raise RbpxError(
            f"format={form.value} is not a format of a report; choose one of "
            f"{', '.join(each.value for each in FORMATS)}; for rows: {typed('fit', format=form.value)}"
        )
    if request.output is not None:
        return form, Path(request.output).expanduser()
    return form, Path(f"{verb}{'_' if form.is_figures else '.'}{form.value}")


def _is_ours(path: Path) -> bool:
    """Whether a file begins as reports of rbpx do."""
    if not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as file:
        begins = file.read(_MARKED_WITHIN)
    return any(mark in begins for mark in _MARKS)
