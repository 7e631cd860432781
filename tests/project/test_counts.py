"""Counts in words: no `1 documents` and no `document(s)` anywhere."""

import re

from rbpx.errors import number_of
from tests.support.places import PACKAGE


def test_a_count_agrees_with_its_noun_and_no_text_of_the_package_leaves_it_open() -> None:
    assert [number_of(n, "process", "processes") for n in (0, 1, 1024)] == [
        "0 processes",
        "1 process",
        "1,024 processes",
    ]
    assert [number_of(n, "run") for n in (1, 2)] == ["1 run", "2 runs"]
    files = [path for suffix in ("py", "jinja", "js") for path in PACKAGE.rglob(f"*.{suffix}")]
    found = [(path.name, line) for path in files for line in re.findall(r"\}.{,40}\w\(e?s\).*", path.read_text())]
    assert found == []
