"""Where a report goes: requests in; a page, a text or a folder of figures out."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rbpx.config.options import Format
from rbpx.config.request import Request
from rbpx.counts import number_of
from rbpx.errors import RbpxError
from rbpx.files.output import check_output, opened
from rbpx.store.answers import kept_answer
from rbpx.store.messages import collected_messages, repeat
from rbpx.store.remote import open_store

if TYPE_CHECKING:
    from rbpx.analyses.answer import Grid
    from rbpx.report.contents import Report

__all__ = ["check", "write_report"]

_LOGGER = logging.getLogger(__name__)
_NAMES: Final = {
    Format.html: "report.html",
    Format.md: "report.md",
    Format.tex: "report.tex",
    Format.svg: "report_svg",
    Format.pdf: "report_pdf",
}
_FOLDERS: Final = (Format.svg, Format.pdf)
INDEX: Final = "figures.md"  # of a folder: what each file shows
_MARKED_WITHIN: Final = 2048  # characters
_MARKS: Final = ('<meta name="generator" content="rbpx', "<!-- rbpx report", "% rbpx report")


def check(request: Request) -> None:
    """Refuse an output that cannot be written, before anything is fitted.

    Raises:
        RbpxError: the store does not exist, the format is not a report's, or the output exists and is not a report.
    """
    if not open_store(request.store).root.is_dir():
        raise RbpxError(f"store={request.store} does not exist; measure first, or name the store with --store DIR")
    form, path = _place(request)
    named = f"output={path}"
    if form in _FOLDERS:
        if path.exists() and not path.is_dir():
            raise RbpxError(f"{named} is a file, and figures go into a folder; name another one with --output DIR")
        if path.is_dir() and any(path.iterdir()) and not _is_ours(path / INDEX):
            raise RbpxError(f"{named} exists and holds no report; name another folder with --output DIR")
        check_output(str(path / INDEX) if path.is_dir() else str(path))
        return
    check_output(str(path))
    if path.is_file() and path.stat().st_size and not _is_ours(path):
        raise RbpxError(f"{named} exists and is not a report; name another file with --output FILE, or move it away")


def write_report(grids: "Sequence[Grid]", narrowed: str) -> Path:
    """Make a report of everything that is asked for, and write it.

    Returns:
        Where it is.
    """
    form, path = _place(grids[0][0])
    if form in _FOLDERS:
        from rbpx.report.contents import gather
        from rbpx.report.pictures import write_pictures

        n = write_pictures(gather(grids, narrowed), form.value, path, INDEX)
        _LOGGER.info(f"{number_of(n, 'figure')} written to {path}")
        return path
    text, n_runs = _once(grids, narrowed, form)
    with opened(str(path)) as file:
        file.write(text)
    _LOGGER.info(f"report of {number_of(n_runs, 'run')} written to {path} ({len(text.encode()) / 1e6:.1f} MB)")
    return path


def _once(grids: "Sequence[Grid]", narrowed: str, form: Format) -> tuple[str, int]:
    """The text of a report and its runs, from the store where the same was asked before, with the time of then."""
    requests = [request for request, _ in grids]
    cells = [None if cell_keys is None else list(cell_keys) for _, cell_keys in grids]
    asked = {"verb": "report", "form": form.value, "requests": [request.asked() for request in requests], "of": cells}
    kept = kept_answer([request.store for request in requests], asked | {"narrowed": narrowed})
    answer = kept.find() if kept is not None and not requests[0].fresh else None
    if answer is None:
        from rbpx.report.contents import gather

        with collected_messages() as messages:
            report = gather(grids, narrowed)
        answer = {"text": _text(form)(report), "n_runs": report.n_runs, "messages": messages}
        if kept is not None:
            kept.keep(answer)
    else:
        repeat(answer["messages"])
    return answer["text"], answer["n_runs"]


def _text(form: Format) -> "Callable[[Report], str]":
    if form is Format.html:
        from rbpx.report.page import page

        return page
    from rbpx.report.texts import latex, markdown

    return markdown if form is Format.md else latex


def _place(request: Request) -> tuple[Format, Path]:
    """The format, as asked for or by the name of the output, else a page; and where it goes."""
    known = {f".{form.value}": form for form in _NAMES}
    form = request.format
    if form is Format.table:
        form = Format.html if request.output is None else known.get(Path(request.output).suffix.lower(), Format.html)
    if form not in _NAMES:
        raise RbpxError(
            f"format={form.value} is not a format of a report; choose one of "
            f"{', '.join(each.value for each in _NAMES)}; for rows use python -m rbpx fit --format {form.value}"
        )
    return form, Path(request.output or _NAMES[form]).expanduser()


def _is_ours(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as file:
        begins = file.read(_MARKED_WITHIN)
    return any(mark in begins for mark in _MARKS)
