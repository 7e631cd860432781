"""Pages that show what commands print are told again: outputs take the place of old ones, as the page asks."""

import os
from pathlib import Path

from docs.retell import PAGES, retell, told

PRINTS = "for n in range(6): print('line', n, 'x ' * 45 * (n == 1))"
PAGE = f"""
```bash
python -c "open('made', 'w')"
python -c "{PRINTS}"
```

KEPT```text
old
```

```text
python -c "not run"
```
"""


def test_an_output_takes_the_place_of_the_old_one_with_long_lines_folded_or_those_of_a_pattern_kept(
    tmp_path: Path,
) -> None:
    page = PAGE.replace("KEPT", "<!-- only: [04] -->\n") + PAGE.replace("KEPT", "")
    once = retell(page, tmp_path, dict(os.environ))
    whole = ["line 0", "line 1" + " x" * 37, " ".join("x" * 8), "line 2", "line 3", "line 4", "line 5", ""]
    assert [shown.split("\n") for _, shown in told(once)] == [["line 0", "line 4", ""], whole]
    assert (tmp_path / "made").exists(), "by the command before the last"
    assert once.count("<!-- only: [04] -->") == 1
    assert retell(once, tmp_path, dict(os.environ)) == once


def test_every_page_that_is_told_again_is_there() -> None:
    assert len(PAGES) >= 4
    assert [path for path in PAGES if not path.is_file()] == []
