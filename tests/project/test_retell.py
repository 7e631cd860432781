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


def again(folder: Path, kept: str = "") -> str:
    page = PAGE.replace("KEPT", kept)
    ((commands, shown),) = told(retell(page, folder, dict(os.environ)))
    assert len(commands) == 2
    assert (folder / "made").exists()
    return shown


def test_an_output_takes_the_place_of_the_old_one_with_long_lines_folded(tmp_path: Path) -> None:
    first = "line 1" + " x" * 37
    assert again(tmp_path) == f"line 0\n{first}\n{' '.join('x' * 8)}\nline 2\nline 3\nline 4\nline 5\n"


def test_a_page_keeps_the_lines_with_a_pattern(tmp_path: Path) -> None:
    assert again(tmp_path, "<!-- only: [04] -->\n") == "line 0\nline 4\n"


def test_what_is_kept_is_said_of_one_block_alone(tmp_path: Path) -> None:
    page = PAGE.replace("KEPT", "<!-- only: 4 -->\n") + PAGE.replace("KEPT", "")
    once = retell(page, tmp_path, dict(os.environ))
    assert [shown.count("\n") for _, shown in told(once)] == [1, 7]
    assert once.count("<!-- only: 4 -->") == 1
    assert retell(once, tmp_path, dict(os.environ)) == once


def test_every_page_that_is_told_again_is_there() -> None:
    assert len(PAGES) >= 4
    assert [path for path in PAGES if not path.is_file()] == []
