"""Parts of pages that the code says, such as verbs, keys and statuses: `make reference` writes them into their pages.

A part stands between `<!-- generated: NAME -->` and `<!-- /generated -->`. It is committed, so that pages can be read
where they lie, and a test holds it against the code.
"""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ext import code, holdings

PARTS: dict[str, Callable[[], str]] = {
    "verbs": code.verbs,
    "keys": code.keys,
    "flags": code.flags,
    "families": code.families,
    "datasets": code.datasets,
    "relations": holdings.relations,
    "laws": holdings.laws,
    "distributions": holdings.distributions,
    "statuses": holdings.statuses,
}
for _file in ("reciprocal_rank.py", "schooner.yaml", "letters.yaml"):
    PARTS[_file.partition(".")[0]] = partial(code.example, _file)
PART = re.compile(r"^<!-- generated: (\w+) -->\n.*?^<!-- /generated -->$", re.MULTILINE | re.DOTALL)


def filled(page: str) -> str:
    """A page with its generated parts as the code says them now.

    Raises:
        KeyError: a part that does not exist.
    """
    return PART.sub(lambda part: f"<!-- generated: {part[1]} -->\n\n{_said(part[1])}\n\n<!-- /generated -->", page)


def _said(part: str) -> str:
    """What the code says, with one empty line where there are several outside blocks."""
    block_or_lines = re.compile(r"(^```.*?^```$)|\n{3,}", re.MULTILINE | re.DOTALL)
    return block_or_lines.sub(lambda found: found[1] or "\n\n", PARTS[part]().strip("\n"))


def main() -> None:
    """Write the parts of all pages anew."""
    for path in sorted(Path(__file__).parent.rglob("*.md")):
        page = path.read_text(encoding="utf-8")
        if filled(page) != page:
            path.write_text(filled(page), encoding="utf-8")


if __name__ == "__main__":
    main()
