"""Figures for a paper: a report in, a folder of vector files with their captions out; SVG, or PDF with its fonts."""

from pathlib import Path
from typing import Any

import vl_convert

from rbpx.display.chart.colours import config
from rbpx.display.chart.figure import Figure, Undrawn
from rbpx.errors import RbpxError
from rbpx.files.atomic import atomic_write, atomic_write_text
from rbpx.report.contents import Report

__all__ = ["write_pictures"]

_WIDTH = 420  # points of a figure without its axes: about a column of a paper


def write_pictures(report: Report, form: str, folder: Path, index: str) -> int:
    """Write every figure as a file, and a list of them with their captions; return how many were drawn.

    Args:
        report: what to draw.
        form: "svg" or "pdf".
        folder: where to write; it is created.
        index: name of the list.

    Raises:
        RbpxError: the folder cannot be written.
    """
    named = [
        (f"{part.name}-{section.name}-{figure.name}", part.title, figure)
        for part in report.parts
        for section in part.sections
        for figure in section.figures
    ]
    named += [(f"{s.name}-{s.title}-{figure.name}", s.title, figure) for s in report.gaps for figure in s.figures]
    named += [(figure.name, report.title, figure) for figure in report.across]
    lines = [f"<!-- rbpx report {report.version} -->", f"# Figures: {report.title}", "", f"{report.made_at} UTC", ""]
    drawn = 0
    try:
        folder.mkdir(exist_ok=True)
        for name, title, figure in named:
            if isinstance(figure, Undrawn):
                lines += [f"**{figure.title}**, {title}: not drawn. {figure.reason}", ""]
                continue
            drawn += 1
            with atomic_write(folder / f"{name}.{form}") as temporary:
                temporary.write_bytes(_rendered(figure, form))
            lines += [f"**[{figure.title}]({name}.{form})**, {title}. {figure.caption} {figure.says}", ""]
        atomic_write_text(folder / index, "\n".join(lines))
    except OSError as problem:
        raise RbpxError(f"output={folder} cannot be written: {problem.strerror}; name another folder") from None
    return drawn


def _rendered(figure: Figure, form: str) -> bytes:
    spec: dict[str, Any] = {**figure.spec, "width": _WIDTH}
    look = config("light") | {"font": "Liberation Sans, Arial, Helvetica, sans-serif"}
    if form == "pdf":
        return bytes(vl_convert.vegalite_to_pdf(spec, config=look))
    return str(vl_convert.vegalite_to_svg(spec, config=look)).encode()
