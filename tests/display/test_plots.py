"""Plots in a terminal, read back from what is printed: where marks stand against ticks, points against the laws."""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.analyses.registry import analyses
from rbpx.cli.registry import asking
from rbpx.config.hydra.compose import compose
from rbpx.config.options import Format
from rbpx.config.request import Request
from rbpx.display.plot import Axis, Series, draw, scale_of, tick_names
from rbpx.errors import RbpxError
from tests.support.commands import here
from tests.support.synthetic import Truth, write_store


def printed(*args: Any, plain: bool = False) -> list[str]:
    return ["".join(cell.character for cell in line) for line in draw(*args, plain=plain)]


def points(x: Any, y: Any, **more: Any) -> Series:
    return Series("points", np.array(x, float), np.array(y, float), **more)


def inner(lines: list[str]) -> list[str]:
    """What lies between the axes, a line each."""
    return [re.split("[│┤]", line, maxsplit=1)[1] for line in lines[1:-3]]


def braille_dots(lines: list[str]) -> list[tuple[int, int]]:
    """(across, down) of every dot, by the order in which Unicode numbers them."""
    of_bit = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)]
    found = []
    for row, line in enumerate(inner(lines)):
        for column, character in enumerate(line):
            for bit, (across, down) in enumerate(of_bit):
                if 0x2800 < ord(character) < 0x2900 and (ord(character) - 0x2800) >> bit & 1:
                    found.append((2 * column + across, 4 * row + down))
    return found


def test_a_point_at_a_tick_stands_in_the_column_and_the_row_of_that_tick() -> None:
    x, y = [1.0, 10.0, 100.0, 1000.0], [1e-4, 1e-3, 1e-2, 1e-1]
    for log in (True, False):
        values = y if log else [0.0, 20.0, 40.0, 60.0]
        lines = printed([points(x, values)], Axis("x"), Axis("y", log), 60, 15)
        ticked = [at for at, character in enumerate(lines[-3]) if character == "┬"]
        assert [line.index("●") for line in reversed(lines) if "●" in line] == ticked
        rows = [line for line in lines if "●" in line]
        assert [float(line.split("┤")[0]) for line in rows] == values[::-1]


def test_the_names_along_stand_under_their_ticks() -> None:
    lines = printed([points([1, 1e6], [1, 2])], Axis("x"), Axis("y"), 80, 10)
    names = {match.start(): match[0] for match in re.finditer(r"\S+", lines[-2])}
    ticked = [at for at, character in enumerate(lines[-3]) if character == "┬"]
    assert len(ticked) == len(names) == 7
    for tick, (start, name) in zip(ticked, names.items(), strict=True):
        assert start <= tick <= start + len(name)
    assert [float(name) for name in names.values()] == [10.0**n for n in range(7)]


def test_a_power_law_is_a_straight_line_of_dots_through_every_column() -> None:
    S = np.geomspace(1e3, 1e9, 7)
    curve = np.geomspace(1e3, 1e9, 60)
    none = np.full(7, math.nan)
    drawn = points(S, none, curve_2L=np.array([curve, 5 * curve**-0.1]))
    lines = printed([drawn], Axis("S"), Axis("y"), 80, 16)
    dots = braille_dots(lines)
    across, down = (np.array(each) for each in zip(*dots, strict=True))
    assert set(range(across.min(), across.max() + 1)) == set(across)
    assert across.max() - across.min() > 0.9 * 2 * (80 - 6)
    slope, intercept = np.polyfit(across, down, 1)
    assert np.abs(down - (slope * across + intercept)).max() < 1.2  # dots
    assert slope > 0  # downwards, as y falls


def test_an_interval_reaches_from_its_lower_to_its_upper_end() -> None:
    ends = points([1.0, 2.0, 3.0], [2.0, 2.0, 2.0], ends_2N=np.array([[0.0, math.nan, 1.0], [4.0, 4.0, 3.0]]))
    lines = printed([ends], Axis("x", log=False), Axis("y", log=False), 40, 40)
    of_column: dict[int, int] = {}
    for line in inner(lines):
        for column, character in enumerate(line):
            if character in "│●":
                of_column[column] = of_column.get(column, 0) + 1
    full, none, half = (of_column[column] for column in sorted(of_column))
    row = 4 * 1.06 / 40  # of y; 3 % of margin on each side
    assert 4 / row <= full < 4 / row + 2
    assert none == 1
    assert 2 / row <= half < 2 / row + 2


def test_no_line_is_wider_than_the_terminal_and_ascii_is_ascii() -> None:
    for width in (30, 40, 80, 123):
        rng = np.random.default_rng(width)
        series = [
            points(10 ** rng.uniform(3, 12, 9), rng.uniform(-1e6, 1e6, 9), curve_2L=np.array([[1.0, 1e12], [0, 9e5]]))
            for _ in range(8)
        ]
        for plain in (False, True):
            lines = printed(series, Axis("S"), Axis("y", log=False), width, 12, plain=plain)
            assert max(map(len, lines)) <= width
            assert "".join(lines).isascii() is plain


def test_what_has_no_place_on_an_axis_is_not_drawn() -> None:
    lines = printed([points([1, 10, 100, 1000, 0], [1, 0, -1, math.inf, 1])], Axis("x"), Axis("y"), 60, 10)
    assert "".join(lines).count("●") == 1
    with pytest.raises(ValueError, match="no value has a place"):
        draw([points([1.0], [0.0])], Axis("x"), Axis("y"), 60, 10, False)
    with pytest.raises(ValueError, match="9 series for 8 marks"):
        draw([points([1.0], [1.0])] * 9, Axis("x"), Axis("y"), 60, 10, False)


def test_ticks_lie_on_their_axis_in_order_and_their_names_are_their_values() -> None:
    for seed in range(40):
        rng = np.random.default_rng(seed)
        log = bool(seed % 2)
        centre, width = rng.uniform(-6, 6), 10 ** rng.uniform(-2.5, 1)
        ends = [centre - width, centre + width] if not log else [10 ** (centre - width), 10 ** (centre + width)]
        scale = scale_of(Axis("v", log), ends)
        ticks = scale.ticks(6)
        assert ticks == sorted(set(ticks)), seed
        assert len(ticks) >= 2, seed
        assert all(0 <= scale.place(tick) <= 1 for tick in ticks), seed
        assert [float(name) for name in tick_names(ticks)] == pytest.approx(ticks, rel=1e-5, abs=1e-12), seed


# ------------------------------------------------------------------------------------------------------ as people ask


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("plots") / "store"
    write_store(root, Truth(), seed=1, dataset="one", n_documents=20)
    return root


def test_the_plot_of_a_fit_shows_every_size_and_says_the_exponent_of_the_table(store: Path, cwd: Path) -> None:
    asked = ("fit", "k=[1,100]", "laws=[rbp]", "resamples=50", "--store", store)
    plot = here(*asked, "--plot", cwd=cwd, check=0).stdout
    rows = json.loads(here(*asked, "--format", "json", cwd=cwd, check=0).stdout)
    lines = [line for line in plot.splitlines() if re.match(r"\s*[-\d.e]*\s*[│┤└]", line)]
    assert max(map(len, lines)) <= 80
    drawn, legend, left = plot.rsplit("non-embedding parameters", 2)
    for mark, row in zip("●■", rows, strict=True):
        assert drawn.split("against S")[1].count(mark) == 5
        assert f"{mark} k = {row['k']}\n" in legend
        ends = f"95 %: {row['alpha_lo']:.4f} to {row['alpha_hi']:.4f}"
        assert re.search(rf"-ln RBP_{row['k']} goes from \S+ to \S+ with alpha = {row['alpha']:.4f} \({ends}\)", legend)
        x, residuals = np.log(row["params"]["S"]), np.array(row["params"]["residuals_ln"])
        q = np.polyfit(x, residuals, 2)[0]
        assert f"k = {row['k']}, off by {np.sqrt(np.mean(residuals**2)):.2g}, curvature {q:.4f} (" in left


def test_a_terminal_without_unicode_is_given_ascii(store: Path, cwd: Path) -> None:
    words = ("klaw", "resamples=50", "--plot", "--store", store)
    drawn = here(*words, cwd=cwd, env={"TERM": "linux"}, check=0).stdout.split("-ln RBP_k against k")[1]
    assert drawn.isascii()
    assert all(f"  {mark} size = {size}\n" in drawn for mark, size in zip("ox", (1000, 10000), strict=True))


def test_a_verb_without_a_plot_has_no_such_key(cwd: Path) -> None:
    for verb in ("compare", "status"):
        with pytest.raises(RbpxError, match=f"{verb} has no key plot; it is a key of other verbs; "):
            compose(asking(verb), ["plot=true"])
    answer = here("run", "analyses=[units]", "--plot", "--store", cwd / "none", cwd=cwd, check=2)
    drawn = ", ".join(name for name, each in analyses().items() if each.draws)
    assert drawn.startswith("fit, ")
    assert answer.stderr == f"rbpx: units has no plot; drop --plot, or ask one of {drawn}\n"


def test_a_plot_is_not_for_programs() -> None:
    with pytest.raises(RbpxError, match=r"plot=true draws .*format=json is for programs; drop one of them"):
        Request(plot=True, format=Format.json)
