"""Percentages at their ends: what is nearly none or nearly all is told apart from none and from all; bytes."""

import pytest

from rbpx.display.vocabulary import in_bytes, part, percent


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


@pytest.mark.parametrize(
    ("n", "shown"),
    [
        *((None, "–"), (0, "0 B"), (999, "999 B"), (1_000, "1.00 kB"), (162_827, "163 kB"), (999_600, "1.00 MB")),
        *((41_943_040, "41.9 MB"), (1.2e9, "1.20 GB"), (24.6e12, "24.6 TB"), (999.4e6, "999 MB")),
    ],
)
def test_bytes_are_told_in_three_digits(n: float | None, shown: str) -> None:
    assert in_bytes(n) == shown
