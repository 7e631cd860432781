"""Percentages at their ends, what is nearly none or all told apart from none and all; bytes; numbers of any size."""

from collections.abc import Callable
from typing import Any

import pytest

from rbpx.display.vocabulary import in_bytes, part, percent, short, spoken, told_apart

SHARES = ((2e-7, "0.000020"), (0.083, "8.3"), (0.5, "50"), (0.93, "93"), (0.9954, "99.5"), (0.9996, "99.96"))
SHOWN: dict[Callable[..., str], tuple[tuple[float | None, str], ...]] = {
    part: (*SHARES, (0.99996, "99.996")),
    percent: ((0.0, "+0.0%"), (-1.0, "-100.0%"), (12.0, "+1,200%"), (-12.0, "-1,200%"), (123456.0, "+1e+07%")),
    in_bytes: (
        *((None, "–"), (0, "0 B"), (999, "999 B"), (1_000, "1.00 kB"), (162_827, "163 kB"), (999_600, "1.00 MB")),
        *((41_943_040, "41.9 MB"), (1.2e9, "1.20 GB"), (24.6e12, "24.6 TB"), (999.4e6, "999 MB")),
    ),
    short: (
        *((None, "–"), (0.0123456, "0.0123"), (999.4, "999"), (123_456, "123,000"), (999_600, "1M"), (-4e6, "-4M")),
        *((31_622_776, "31.6M"), (2.49e9, "2.49B"), (287.6e12, "288T"), (999.6e12, "1e+15"), (7.2e21, "7.2e+21")),
    ),
    spoken: (
        *((None, "–"), (0.0123456, "0.012"), (999.4, "1k"), (123_456, "120k"), (999_600, "1M"), (-4e6, "-4M")),
        *((31_622_776, "32M"), (2.49e9, "2.5B"), (287.6e12, "290T"), (999.6e12, "1e+15"), (7.2e21, "7.2e+21")),
    ),
}


@pytest.mark.parametrize("form", SHOWN, ids=lambda form: form.__name__)
def test_a_number_of_any_size_is_told_in_few_digits_and_nearly_all_is_not_all(form: Callable[..., Any]) -> None:
    assert [(value, form(value)) for value, _ in SHOWN[form]] == [*SHOWN[form]]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ((2.166, 2.155, 2.177), ["2.166", "2.155", "2.177"]),
        ((3.908, 3.63, 4.27), ["3.91", "3.63", "4.27"]),
        ((1.0334, 1.033, 1.0338), ["1.0334", "1.0330", "1.0338"]),
        ((1.0, 1.0, 1.0), ["1.00", "1.00", "1.00"]),
        ((2.5e6, 1e6, 4e6), ["2.5M", "1M", "4M"]),
    ],
)
def test_a_number_and_its_interval_have_digits_of_at_most_a_fifth_of_its_width(
    values: tuple[float, ...], told: list[str]
) -> None:
    assert told_apart(*values) == told
