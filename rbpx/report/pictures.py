"""Writes the figures of a report as files: SVG, PDF with its fonts, or PNG for slides."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import vl_convert

from rbpx.config.keys.output import LOOKS, Told
from rbpx.config.options import Legend
from rbpx.display.chart.colours import GROUNDS, config
from rbpx.display.chart.figure import Figure, Undrawn, spec
from rbpx.errors import RbpxError, number_of
from rbpx.files.entries import atomic_write, atomic_write_text
from rbpx.report.contents import Report
from rbpx.spelling import typed

_POINTS: Final = 72  # an inch
_PIXELS: Final = {"svg": 96, "pdf": _POINTS, "png": _POINTS}  # an inch of a drawing
_DOTS: Final = 300  # an inch of a printed PNG
_INDEX: Final = r'RBP<tspan dy=".2em" font-size=".75em">\1</tspan><tspan dy="-.15em">\2</tspan>'  # in any font
_FONTS: Final = "Liberation Sans, Arial, Helvetica, sans-serif"


@dataclass(frozen=True)
class Look:
    """The look of figures in files: width in inches with axes, size of text in points, font, legend."""

    width: float = 6.5
    font_size: float = 9.0
    font: str = _FONTS
    legend: Legend = Legend.top

    @classmethod
    def of(cls, request: Told) -> "Look":
        """The look that a request asks for."""
        given = {name: getattr(request, name) for name in LOOKS}
        return cls(**{name: value for name, value in given.items() if value is not None})

    def rendered(self, figure: Figure, form: str) -> bytes:
        """Renders a figure as the contents of a file."""
        pixels, font_px = self.width * _PIXELS[form], self.font_size * _PIXELS[form] / _POINTS
        drawn = spec(figure.chart, figure.values, pixels / font_px)
        height = drawn["height"] if figure.chart.y.names else min(drawn["height"], 0.75 * pixels)
        drawn |= {"width": pixels, "height": height}
        drawn["autosize"] = {"type": "fit-x", "contains": "padding"}
        look = config("light", font_px, self.legend.value) | {"font": self.font, "padding": 1}
        if form == "png":
            look["background"] = GROUNDS["light"]  # a slide may be dark
        svg = with_indices(vl_convert.vegalite_to_svg(drawn, config=look))
        if form == "svg":
            return svg.encode()
        return bytes(vl_convert.svg_to_pdf(svg) if form == "pdf" else vl_convert.svg_to_png(svg, ppi=_DOTS))


def with_indices(svg: str) -> str:
    """Sets the index of RBP in a drawing's texts below the line."""
    return re.sub(r"RBP_(\d+|k\b)([^<]*)", _INDEX, svg)


def write_pictures(report: Report, form: str, path: Path, index: str, look: Look) -> int:
    """Writes every figure as svg, pdf or png, and a list of them with their captions; returns their number.

    `path` is a folder, which is created, or a file for the figure of a single answer.

    Raises:
        RbpxError: a file is named for several answers, or for none that can be drawn.
    """
    parts = (*report.first, *report.parts)
    sections = [(f"{part.name}-{each.name}", part.title, each) for part in parts for each in part.sections]
    sections += [(f"{each.name}-{each.title}", each.title, each) for each in report.gaps]
    named = [(f"{of}-{figure.name}", title, figure) for of, title, each in sections for figure in each.figures]
    named += [(figure.name, report.title, figure) for figure in report.across]
    if path.suffix.lower() == f".{form}":
        firsts = [[each for each in section.figures if isinstance(each, Figure)][:1] for *_, section in sections]
        return _write_one([*(each for of in firsts for each in of), *report.across], form, path, look)
    drawn = {_plain(name): (title, each) for name, title, each in named if isinstance(each, Figure)}
    path.mkdir(exist_ok=True)
    lines = [f"<!-- rbpx report {report.version} -->", f"# Figures: {report.title}"]
    lines += ["", f"{report.made_at} UTC", ""]
    for name, (title, figure) in drawn.items():
        with atomic_write(path / f"{name}.{form}") as temporary:
            temporary.write_bytes(look.rendered(figure, form))
        lines += [f"**[{figure.title}]({name}.{form})**, {title}. {figure.caption} {figure.says}", ""]
    for _, title, each in named:
        lines += [f"**{each.title}**, {title}: not drawn. {each.reason}", ""] if isinstance(each, Undrawn) else []
    atomic_write_text(path / index, "\n".join(lines))
    return len(drawn)


def _write_one(drawn: Sequence[Figure], form: str, path: Path, look: Look) -> int:
    if len(drawn) != 1:
        raise RbpxError(
            f"output={path} is one file, and {number_of(len(drawn), 'answer')} can be drawn; narrow to one, or name a "
            f"folder: {typed(output=str(path.with_suffix('')))}"
        )
    with atomic_write(path) as temporary:
        temporary.write_bytes(look.rendered(drawn[0], form))
    return 1


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-")
