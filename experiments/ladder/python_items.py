"""Makes items of Python source: a context, choices, and the number of the right one.

    python experiments/ladder/python_items.py rbpx/data/python_items

writes those that come with rbpx, of the standard library of the Python that runs it (theirs is of 3.11.7).

The right choice is drawn at random, so guessing without the context gives chance level. Choices begin where tokenizers
begin a token: with a space, or with a bracket after a letter or digit.

- identifiers: the name that follows, among three that follow a space in the same file.
- keywords: the keyword argument that follows in a call, among three that the same file passes.
- brackets: the closing bracket, round or square, each right in half of the items; in half of them the last opened
bracket is of the other kind and already closed.
"""

import gzip
import io
import json
import keyword
import random
import re
import sys
import tokenize
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Any, Final

from rbpx.data.corpus import read_stdlib

__all__ = ["KINDS", "items_of"]

SEED: Final = 42
N_ITEMS: Final = 500
CONTEXT: Final = 800  # characters before the target, from the beginning of a line
_LEAST: Final = 100
_LONGEST: Final = 3000  # characters of a tokenised function
_FUNCTION: Final = re.compile(r"^( *)(?:async )?def .*\n(?:(?:\1 +.*)?\n)+", re.MULTILINE)
_OPENER: Final = {")": "(", "]": "[", "}": "{"}
_OF: Final = {")": "(", "]": "["}  # too few `}` follow a letter or digit
_F_STRING: Final = {"FSTRING_START": 1, "FSTRING_END": -1}  # since Python 3.12; before, all of it is one token
_KEPT: Final = (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING)

Row = dict[str, Any]
Sites = dict[str, list[int]]  # text -> character offsets in the file


@dataclass(frozen=True)
class _Token:
    """A token of a function, and the character of its file at which it begins."""

    text: str
    is_name: bool
    start: int

    @property
    def end(self) -> int:
        """The character behind it."""
        return self.start + len(self.text)


def items_of(kind: str, files: Sequence[tuple[str, str]], n_items: int = N_ITEMS) -> list[Row]:
    """Rows of items; no file gives a second item before every file was tried for a first.

    Args:
        kind: identifiers, keywords or brackets.
        files: path and source of each.
        n_items: how many; fewer where the files have no more.

    Returns:
        Rows with the columns file, line, context, choices, and right (number of a choice, from 0).
    """
    in_turn = _Files(kind, files)
    if kind != "brackets":
        return in_turn.each_in_turn(_one_of_three, n_items)
    strata = list(product(_OF, _OF.values()))
    shares = [n_items // len(strata) + (at < n_items % len(strata)) for at in range(len(strata))]
    drawn = (in_turn.each_in_turn(_closing(*of), share) for of, share in zip(strata, shares, strict=True))
    return [item for items in drawn for item in items]


@dataclass(frozen=True)
class _Question:
    """A kind of item.

    Attributes:
        hint: pattern that a function must contain to be tokenised.
        find: (text, offset) of each possible target in a function.
        functions: tokenised per file; all functions of all files would take ten seconds.
    """

    hint: re.Pattern[str]
    find: Callable[[Sequence[_Token], str], Iterator[tuple[str, int]]]
    functions: int


Drawn = tuple[int, list[str], int]  # where the right choice begins, choices, the number of the right one
Draw = Callable[[Sites, random.Random], Drawn | None]


def _one_of_three(sites: Sites, rng: random.Random) -> Drawn | None:
    """Three different names and a site of the right one, all drawn; removes the right name from `sites`."""
    if len(sites) < 3:
        return None
    names, right = rng.sample(sorted(sites), 3), rng.randrange(3)
    return rng.choice(sites.pop(names[right])), names, right


def _closing(closer: str, last: str) -> Draw:
    """A site where one bracket closes and the last one opened before it is of a given kind."""

    def one(sites: Sites, rng: random.Random) -> Drawn | None:
        places = sites.get(closer + last)
        return (places.pop(rng.randrange(len(places))), list(_OF), list(_OF).index(closer)) if places else None

    return one


class _Files:
    """Files in a seeded order, with their possible targets, found lazily."""

    def __init__(self, kind: str, files: Sequence[tuple[str, str]]) -> None:
        self._question, self._texts, self._sites = KINDS[kind], dict(files), dict[str, Sites]()
        self._rng = {name: random.Random(f"{SEED} {kind} {name}") for name in self._texts}
        self._names = sorted(self._texts)
        random.Random(f"{SEED} {kind}").shuffle(self._names)

    def each_in_turn(self, draw: Draw, n_items: int) -> list[Row]:
        """Items drawn from the files in turn, until there are enough or no file has more."""
        items: list[Row] = []
        names = self._names
        while names and len(items) < n_items:
            more = []
            for name in names:
                drawn = draw(self._of(name), self._rng[name]) if len(items) < n_items else None
                if drawn is not None:
                    items.append(_item(name, self._texts[name], *drawn))
                    more.append(name)
            names = more
        return items

    def _of(self, name: str) -> Sites:
        if name not in self._sites:
            sites, text = Sites(), self._texts[name]
            for tokens in _functions(text, self._question, self._rng[name]):
                for what, start in self._question.find(tokens, text):
                    if start - _begin(text, start) >= _LEAST:
                        sites.setdefault(what, []).append(start)
            self._sites[name] = sites
        return self._sites[name]


def _item(name: str, text: str, start: int, choices: list[str], right: int) -> Row:
    """A row; a space before the target belongs to each choice."""
    space = " " if text[start - 1] == " " else ""
    return {
        "file": name,
        "line": text.count("\n", 0, start) + 1,
        "context": text[_begin(text, start) : start - len(space)],
        "choices": [space + choice for choice in choices],
        "right": right,
    }


def _begin(text: str, start: int) -> int:
    """Where the context of a place begins."""
    earliest = max(0, start - CONTEXT)
    if earliest == 0:
        return 0
    newline = text.find("\n", earliest - 1, start)
    return start if newline < 0 else newline + 1  # empty where a line exceeds the context


def _functions(text: str, question: _Question, rng: random.Random) -> Iterator[list[_Token]]:
    """The tokens of a few functions of a file; one whose lines do not show where it ends is left out."""
    short = (match for match in _FUNCTION.finditer(text) if len(match.group()) <= _LONGEST)
    hinted = (match for match in short if question.hint.search(match.group()))
    found = [match for match in hinted if not text.count('"""', 0, match.start()) % 2]  # no example in a docstring
    for match in rng.sample(found, min(len(found), question.functions)):
        source = match.group()
        starts = [match.start()]
        for line in io.StringIO(source):  # as the tokenizer counts lines: a form feed begins none
            starts.append(starts[-1] + len(line))
        tokens, depth = list[_Token](), 0
        try:
            for token in tokenize.generate_tokens(io.StringIO(source).readline):
                depth += _F_STRING.get(tokenize.tok_name[token.type], 0)
                if token.type in _KEPT and depth == 0:
                    place = starts[token.start[0] - 1] + token.start[1]
                    tokens.append(_Token(token.string, token.type == tokenize.NAME, place))
        except (tokenize.TokenError, SyntaxError):
            continue
        yield tokens


def _identifiers(tokens: Sequence[_Token], text: str) -> Iterator[tuple[str, int]]:
    """Names after a space that are neither defined there nor passed as keywords."""
    for before, token in pairwise(tokens):
        follows_text = text[token.start - 1] == " " and text[token.start - 2] not in " \n"
        is_new = before.text in ("def", "class", "lambda") or text.startswith("=", token.end)
        if follows_text and not is_new and _is_plain(token):
            yield token.text, token.start


def _keyword_arguments(tokens: Sequence[_Token], text: str) -> Iterator[tuple[str, int]]:
    """Argument names with their `=`, after the bracket of a call, or after a comma and a space."""
    calls: list[bool] = []  # per open bracket: a call's, without a lambda in it
    for at, token in enumerate(tokens):
        if token.text in _OPENER.values():
            calls.append(token.text == "(" and _is_called(tokens, at))
        elif token.text in _OPENER:
            calls = calls[:-1]
        elif token.text == "lambda" and calls:
            calls[-1] = False
        elif calls and calls[-1] and _is_plain(token):
            begins = re.search(r"(\(|, )\Z", text[max(0, token.start - 2) : token.start])
            if begins and re.match(r"=(?!=)", text[token.end : token.end + 2]):
                yield token.text + "=", token.start


def _brackets(tokens: Sequence[_Token], text: str) -> Iterator[tuple[str, int]]:
    """Closing brackets behind a letter or digit whose opener lies in the context, with the bracket opened last."""
    opened, last = list[_Token](), ""
    for token in tokens:
        if token.text in _OPENER.values():
            opened.append(token)
            last = token.text
        elif token.text in _OPENER and opened:
            opener, before = opened.pop(), text[token.start - 1]
            is_near = opener.start >= _begin(text, token.start)
            if token.text in _OF and last in _OF.values() and is_near and before.isascii() and before.isalnum():
                yield token.text + last, token.start


def _is_called(tokens: Sequence[_Token], at: int) -> bool:
    """Whether a bracket follows what can be called, and is not that of a definition."""
    if at < 2:
        return False
    name = tokens[at - 1]
    is_callee = (name.is_name and not keyword.iskeyword(name.text)) or name.text in (")", "]")
    return is_callee and tokens[at - 2].text not in ("def", "class")


def _is_plain(token: _Token) -> bool:
    """Whether it is a name of ASCII letters, not reserved and not private."""
    is_word = token.is_name and not keyword.iskeyword(token.text)
    return is_word and token.text.isascii() and not token.text.startswith("_")


KINDS: Final = {
    "identifiers": _Question(re.compile(r""), _identifiers, 3),
    "keywords": _Question(re.compile(r"(?:, |\()[a-zA-Z]\w*=(?!=)"), _keyword_arguments, 40),
    "brackets": _Question(re.compile(r"[A-Za-z0-9]\]"), _brackets, 40),
}


def main(folder: Path) -> None:
    """Writes the items of each kind, a row a line; the same files make the same bytes."""
    for kind in KINDS:
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in items_of(kind, read_stdlib())]
        packed = gzip.compress("".join(lines).encode(), mtime=0)
        (folder / f"{kind}.jsonl.gz").write_bytes(packed)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
