"""What every question says of four stores, in every format, made from one computed result: texts with rounded numbers.

A golden file is `tests/golden/<store>/<question>.txt`; `python -m tests.support.golden` writes them all anew.
"""

import csv
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from rbpx.analyses.registry import analyses
from rbpx.cli.registry import asking
from tests.support.commands import here
from tests.support.once import answered_once
from tests.support.places import PROJECT
from tests.support.reports import words_of
from tests.support.stores import manifests
from tests.support.synthetic import TrueSurface, write_surface

GOLDEN: Final = PROJECT / "tests" / "golden"
PYDOC: Final = "8dd75982"  # how the hash of the text begins that the golden files of the demo are of
FORMATS: Final = ("table 80", "table 200", "csv", "json", "html", "md", "tex")
_MOST_LISTED: Final = 6  # numbers of a list of JSON
_LEFT_BEHIND: Final = ("gradient", "tolerances", "starts", "uncertainty", "residuals_ln", "resamples")
_NOTHING: Final = 1e-9
_MOST_LINES: Final = 250  # of a format
_LONGEST: Final = 120  # words and cells of a line
_NUMBER: Final = re.compile(r"(?<!\w)(?<!\w\.)[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")
_PASSING: Final = re.compile(  # what another run, or machine, says otherwise: ids, times, folders, versions
    r"(?<![\w.])[0-9a-f]{16}(?![\w.])|(?<=text )[0-9a-f]{8}\b|\d{4}-\d\d-\d\d[T ][\d:.]+|/[\w./-]*/store\b|"
    r"rbpx (?:report )?\d+\.\d+\.\d+|[\d.]+ MB"
)

# ------------------------------------------------------------------------------------------------------------- stores


def few(verb: str) -> tuple[str, ...]:
    """Few resamples, of a verb that has any: rows do not depend on how many, the time does."""
    return ("resamples=25",) if "resamples" in asking(verb).keys else ()


def demo(folder: Path) -> Path:
    """The bundled ladder on pydoc, as `make demo` measures it."""
    here(
        "measure", "-m", "model=ladder", "dataset=pydoc", "--store", folder / "store", cwd=folder, check=0, writes=True
    )
    return folder / "store"


def text_of(store: Path) -> str:
    """How the hash of the text of its runs begins."""
    return str(next(iter(manifests(store).values()))["text_hash"])[: len(PYDOC)]


def imported(folder: Path) -> Path:
    """Published results of two families on two texts: shares at three k and two window lengths, and losses."""
    lines = ["family,dataset,S,size,k,n,rbp,loss_nats"]
    for family, level in (("a", 3.0), ("b", 3.6)):
        for dataset, alpha in (("prose", 0.09), ("code", 0.13)):
            for at, S in enumerate((1e6, 4e6, 2e7, 1e8, 5e8, 2e9)):
                loss = 9.0 * S ** -(alpha / 2) * (1 + 0.004 * (-1) ** at)
                for k in (1, 10, 100):
                    for n in (1, 5):
                        y = level * S**-alpha * k**-0.3 * (1 + 0.006 * (-1) ** (at + k)) * n**0.97
                        lines.append(f"{family},{dataset},{S},{S / 1e6:g}m,{k},{n},{2.718281828**-y:.9f},{loss:.9f}")
    file = folder / "published.csv"
    file.write_text("\n".join(lines) + "\n")
    here(
        "import", file, "source=them", "ties=pessimistic", "--store", folder / "store", cwd=folder, check=0, writes=True
    )
    return folder / "store"


def trainings(folder: Path) -> Path:
    """Four sizes on three numbers of tokens each, and a training with six checkpoints."""
    truth = TrueSurface(S=(10_000, 80_000, 640_000, 5_120_000), D=(10**6, 10**7, 10**8))
    write_surface(folder / "store", truth, 1, n_documents=40, n_tokens=250)
    pairs = [(40_000, 10**6 * 2**at) for at in range(6)]
    write_surface(folder / "store", truth, 2, 40, 250, family="long", pairs=pairs, states=True)
    return folder / "store"


def items(folder: Path) -> Path:
    """Four sizes of the ladder on questions with four choices each."""
    names = ("open", "close", "read", "write", "list", "dict", "len", "print")
    rows = [
        {"q": f"The function {names[n % 8]} of the module", "right": n % 4, "kind": "ab"[n % 2],
         "choices": [f" {names[(n + at) % 8]}s a file" for at in range(4)]}
        for n in range(24)
    ]  # fmt: skip
    file = folder / "items.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    keys = ("dataset.context=[q]", "dataset.choices=choices", "dataset.right=right", "dataset.category=kind")
    words = ("measure", "model=ladder", "size=[3k,25k,200k,1.2m]", "dataset=file", f"dataset.path={file}", *keys)
    here(*words, "--store", folder / "store", cwd=folder, check=0, writes=True)
    return folder / "store"


STORES: Final[Mapping[str, Callable[[Path], Path]]] = {
    "demo": demo, "imported": imported, "trainings": trainings, "items": items,
}  # fmt: skip
# What a question needs to be asked at all, and other axes, tie rules and methods, once each.
WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "compare": ("a=ladder/25k", "b=ladder/1.2m"),
    "predict": ("S=[1e7,1e9]",),
    "tokenwise": ("n=[5]",),
    "outcomes": ("n=[2]",),
    "emergence": ("n=[1,5]", "k=[1,10]"),
    "surface": ("budgets=[1e14,1e16]", "form=all", "laws=[cross_entropy,rbp]", "k=1"),
    "design": ("budgets=[1e14]",),
    "multiplier": ("base=a", "variant=b"),
    "downstream": ("features=all",),
}
MORE: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "fit-along-D": ("trainings", ("fit", "axis=D")),
    "fit-along-C": ("trainings", ("fit", "axis=C")),
    "emergence-along-D": ("trainings", ("emergence", "axis=D", "k=1", "n=[1,2]")),
    "predict-at-tokens": ("trainings", ("predict", "S=1e7", "D=1e9", "laws=[cross_entropy]")),
    "fit-all-methods": ("demo", ("fit", "method=all", "laws=[rbp,cross_entropy]", "k=[1,10]")),
    "fit-mid-ties": ("demo", ("fit", "ties=mid", "laws=[rbp]", "k=[1,10]")),
    "klaw-optimistic-ties": ("demo", ("klaw", "ties=optimistic")),
    "gaps-by-position": ("demo", ("gaps", "slices=position", "k=[10]")),
}


_OPEN: Final = {
    *((store, verb) for store in ("demo", "items") for verb in ("surface", "design")),
    *((store, "closure") for store in ("demo", "items", "trainings")),
}
"""What another processor says otherwise: surfaces of one number of tokens, the order of forms that fit alike."""


def lines() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Store, name and words of every golden file."""
    for store in STORES:
        for verb, question in analyses().items():
            measures = question.measures or verb == "temperature"  # more than the store has
            if not measures and (store, verb) not in _OPEN:
                yield store, verb, (verb, *WORDS.get(verb, ()))
    for name, (store, words) in MORE.items():
        yield store, name, words


# ------------------------------------------------------------------------------------------------------------- texts


def told(store: Path, words: tuple[str, ...], cwd: Path) -> str:
    """What a question says in every format, from one computed result; or why it says nothing, in the first and last."""
    with answered_once():
        parts = {FORMATS[0]: _asked(store, words, FORMATS[0], cwd)}
        refused = parts[FORMATS[0]].startswith("rbpx: ")
        parts |= {form: _asked(store, words, form, cwd) for form in (FORMATS[-1:] if refused else FORMATS[1:])}
    return "\n".join(f"== {form}\n{said}" for form, said in parts.items()).rstrip() + "\n"


def _asked(store: Path, words: tuple[str, ...], form: str, cwd: Path) -> str:
    name, _, width = form.partition(" ")
    output = cwd.parent / "page.html"
    more = ("--output", output) if name == "html" else ()
    line = (*words, *few(words[0]), "fresh=true", "--format", name, "--store", store, *more)
    answer = here(*line, cwd=cwd, env={"COLUMNS": width or "80", "NO_COLOR": "1"}, writes=bool(more))
    text = answer.stderr if answer.returncode else answer.stdout
    if answer.returncode == 0:
        text = {"csv": _csv, "json": _json, "html": lambda _: _page(output)}.get(name, str)(text)
    lines = _rounded(_PASSING.sub("@", text.replace(str(store), "STORE"))).splitlines()
    more = [f"... and {len(lines) - _MOST_LINES} lines"] if len(lines) > _MOST_LINES else []
    return "\n".join([*(_cut(line.rstrip()) for line in lines[:_MOST_LINES]), *more])


def _rounded(text: str) -> str:
    """Numbers with four digits, and as 0 what is nothing but rounding, before a line is cut."""

    def four(found: re.Match[str]) -> str:
        digits = re.sub(r"e.*|\D", "", found[0]).lstrip("0")
        if len(digits) <= 4 or not re.search(r"[.e]", found[0]):
            return found[0]
        value = float(found[0].replace(",", "").replace("−", "-"))
        return f"{value:.4g}" if abs(value) > _NOTHING else "0"

    return _NUMBER.sub(four, text)


def _cut(line: str) -> str:
    """The beginning of a long line."""
    parts = re.split(r"(?<=[, ])", line)
    return line if len(parts) <= _LONGEST else f"{''.join(parts[:_LONGEST])}..."


def _csv(text: str) -> str:
    """Without what is nested, which JSON has."""
    rows = csv.reader(io.StringIO(text))
    return "\n".join(",".join("{...}" if cell[:1] in ("{", "[") else cell for cell in row) for row in rows)


def _json(text: str) -> str:
    """A line for each value of each row; what is nested in one line."""
    rows = json.loads(text)
    said = [[f"{name} = {json.dumps(_short(each), ensure_ascii=False)}" for name, each in row.items()] for row in rows]
    return "\n--\n".join("\n".join(row) for row in said)


def _short(value: Any) -> Any:
    """Long lists by their first and last values; of what a search leaves behind, which is rounding, no numbers."""
    if isinstance(value, dict):
        return {name: "..." if name in _LEFT_BEHIND else _short(each) for name, each in value.items()}
    if isinstance(value, list):
        if len(value) > _MOST_LISTED and all(not isinstance(each, dict) for each in value):
            return [_short(value[0]), f"... {len(value)} in all", _short(value[-1])]
        return [_short(each) for each in value]
    return value


def _page(path: Path) -> str:
    """The words of a page, tables among them, and what its figures say to those who do not see them."""
    text = path.read_text(encoding="utf-8")
    figures = re.findall(r'class="plot[^"]*"[^>]*aria-label="([^"]+)"', text)
    return "\n".join([*re.split(r"(?<=[.!?:]) ", words_of(text)), *figures])


# ------------------------------------------------------------------------------------------------------------- compare


def differences(expected: str, found: str) -> list[str]:
    """Lines that differ, but for numbers that differ by rounding, or by what another processor rounds otherwise."""
    pairs = zip_longest(expected.splitlines(), found.splitlines(), fillvalue="(no line)")
    return [f"- {a}\n+ {b}" for a, b in pairs if a != b and not _is_near(a, b)]


def _is_near(a: str, b: str) -> bool:
    if len({re.sub(r"\s+", " ", _NUMBER.sub("#", line)) for line in (a, b)}) > 1:
        return False
    pairs = zip(_NUMBER.findall(a), _NUMBER.findall(b), strict=True)
    return all(abs(_value(x) - _value(y)) <= _allowed(x, y) for x, y in pairs)


def _allowed(x: str, y: str) -> float:
    """What another processor may change in a number: laws have tests of their own digits."""
    return max(1.5 * min(_unit(x), _unit(y)), 3e-2 * abs(_value(x)), 1e-3 if "." in x else 0.0)


def _value(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


def _unit(text: str) -> float:
    """What the last digit of a number is worth."""
    mantissa, _, exponent = text.partition("e")
    return 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def main() -> None:
    """Write all golden files anew."""
    asked = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        made: dict[str, Path] = {}
        for store, name, words in lines():
            if asked and f"{store}/{name}" not in asked and store not in asked:
                continue
            if store not in made:
                (Path(folder) / store).mkdir()
                made[store] = STORES[store](Path(folder) / store)
            cwd = Path(folder) / "cwd"
            cwd.mkdir(exist_ok=True)
            path = GOLDEN / store / f"{name}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(told(made[store], words, cwd), encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
