"""Percentages at their ends, what is nearly none or all told apart from none and all; bytes; numbers of any size."""

import pytest

from rbpx.display.vocabulary import in_bytes, part, percent, short, spoken, told_apart


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


@pytest.mark.parametrize(
    ("value", "in_table", "in_sentence"),
    [
        *((None, "–", "–"), (0.0123456, "0.0123", "0.012"), (999.4, "999", "1k"), (123_456, "123,000", "120k")),
        *((999_600, "1M", "1M"), (31_622_776, "31.6M", "32M"), (2.49e9, "2.49B", "2.5B"), (-4e6, "-4M", "-4M")),
        *((287.6e12, "288T", "290T"), (999.6e12, "1e+15", "1e+15"), (7.2e21, "7.2e+21", "7.2e+21")),
    ],
)  # fmt: skip
def test_numbers_from_a_million_on_have_units_and_those_beyond_trillions_an_exponent(
    value: float | None, in_table: str, in_sentence: str
) -> None:
    assert (short(value), spoken(value)) == (in_table, in_sentence)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ((2.193, 2.181, 2.2), ["2.19", "2.18", "2.20"]),
        ((1.0334, 1.033, 1.0338), ["1.0334", "1.0330", "1.0338"]),
        ((1.0, 1.0, 1.0), ["1.00", "1.00", "1.00"]),
        ((2.5e6, 1e6, 4e6), ["2.5M", "1M", "4M"]),
    ],
)
def test_an_interval_has_the_digits_that_tell_its_ends_apart(values: tuple[float, ...], told: list[str]) -> None:
    assert told_apart(*values) == told
