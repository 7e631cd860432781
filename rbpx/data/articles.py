"""Splits the lines of a running text, such as WikiText, into articles at their titles."""

import re
from collections.abc import Iterable
from itertools import pairwise

# WikiText sets a title in one `=` a side, sections in two and more: " = Robert Boulter = ", " = = Early life = = ".
_TITLE = re.compile(r" ?= (?!= )(.+?)(?<! =) = ?")


def split_articles(lines: Iterable[str]) -> list[tuple[str, str]]:
    """(title, text) of each article, in order; text before the first title belongs to none.

    A title is a line ` = Title = ` between two blank lines; a formula that looks like one, within a paragraph, is not.
    Blank lines become empty, and those at the end of an article are left out, so that WikiText gives the same articles
    from its published file, whose blank lines contain a space, as from the rows of the hub, where they are empty.

    Args:
        lines: with or without their line ends, as a file or the rows of a dataset give them.
    """
    plain = [line if line.strip() else "" for line in (line.removesuffix("\n").removesuffix("\r") for line in lines)]
    borders = [i for i, line in enumerate(plain) if _is_title(plain, i, line)] + [len(plain)]
    articles = []
    for start, end in pairwise(borders):
        while not plain[end - 1]:
            end -= 1
        articles.append((plain[start].strip().removeprefix("= ").removesuffix(" ="), "\n".join(plain[start:end])))
    return articles


def _is_title(lines: list[str], i: int, line: str) -> bool:
    alone = (i == 0 or not lines[i - 1]) and (i + 1 == len(lines) or not lines[i + 1])
    return alone and _TITLE.fullmatch(line) is not None
