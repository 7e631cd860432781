"""Percentages at their ends: what is nearly none or nearly all is told apart from none and from all."""

import pytest

from rbpx.display.vocabulary import part, percent


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0.0000002, "0.000020"),
        (0.083, "8.3"),
        (0.5, "50"),
        (0.93, "93"),
        (0.9954, "99.5"),
        (0.9996, "99.96"),
        (0.99996, "99.996"),
    ],
)
def test_a_part_reads_neither_as_none_nor_as_all(share: float, shown: str) -> None:
    assert part(share) == shown


@pytest.mark.parametrize(
    ("error", "shown"),
    [(0.0, "+0.0%"), (-1.0, "-100.0%"), (12.0, "+1,200%"), (-12.0, "-1,200%"), (123456.0, "+1e+07%")],
)
def test_a_relative_error_of_any_size_is_in_percent(error: float, shown: str) -> None:
    assert percent(error) == shown
