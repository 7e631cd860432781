"""Renders the pages of `--help`, without importing anything heavy."""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from rbpx.cli.registry import about, asking, names, verbs
from rbpx.config.folders import options
from rbpx.config.keys.key import Key, keys_of
from rbpx.config.keys.output import LOOKS
from rbpx.config.request import KEYS, NARROWS, Asking
from rbpx.errors import RbpxError
from rbpx.files.escapes import visible_line
from rbpx.questions.registry import THEMES, Analysis

_WIDTH: Final = 118  # characters
_INDENT: Final = 18
_MANY_ALIKE: Final = 3  # datasets or studies whose names begin alike

_MANY: Final = "-m, --multirun    sweep: -m model=a,b dataset=x,y runs every combination and ends with one table"
_PROCESSES: Final = "Processes: torchrun --nproc-per-node 2 -m rbpx ..., or on GPUs accelerate launch -m rbpx ..."
_FLAGS: Final = """\
--cfg job         print the configuration instead of running
--config-dir DIR  your own model/NAME.yaml, dataset/NAME.yaml and experiment/NAME.yaml; or $RBPX_CONFIG_DIR
--version         print the version"""
_STATUS: Final = "Exit status: 0 done, 1 something failed while running, 2 the request is wrong."
_FIRST: Final = ("run", "measure", "plan", "fit", "ranks", "predict", "surface", "decide", "compare", "gaps", "view")
_LAST: Final = ("import", "sql", "status", "report")
_BEGIN: Final = """\
rbpx measures the ranks of the true tokens under language models, and fits how they fall with size.

    python -m rbpx                                  measures a ladder of small models on this machine, prints its laws
    python -m rbpx model=pythia dataset=humaneval   measures Pythia on HumanEval
    python -m rbpx fit                              the laws of all that was measured or imported; report draws a page

The rank of a token is its place by probability, 1 the likeliest; RBP_k is the share of tokens with rank k or better.
S is parameters without embeddings, D training tokens, C training FLOPs. A law is y = C S^-alpha (+ E, an offset)."""
_KEYS: Final = """\
model=FAMILY      ladder, gpt2, pythia, qwen2.5, llama-3, ... (--help all); model=hub model.id=ORG/NAME, or a folder
size=SIZE         all (default), one size, or a list: size='[3k,25k]'
dataset=NAME      stdlib, pydoc, wikipedia, humaneval, gsm8k, ...; dataset=file dataset.path=FILE is your own text
store=DIR         folder of the store (--store DIR), default $RBPX_STORE or store/
details=true      all that a question knows (--details); it shows its answer and one table without
format=table      table, csv, json, html, md, tex, svg, pdf, png (--format F); output=FILE is where (--output FILE)"""
_RUNS: Final = (*NARROWS, "checkpoints")  # keys that choose what a question looks at
_LOOKS: Final = "width=IN          of figures in files, inches; font_size=PT, font=NAME, legend=right: how they look"
_SHOWN: Final = ("sql_timeout_s", "sql_memory_mib", "store", "details", "format", "spreadsheet", *LOOKS, "output")


def help_text(page: str, own: Sequence[Path] = ()) -> str:
    """A page of help: the first one (empty), `all`, or a verb's, with names in the user's folders `own`."""
    if page == "":
        return _first()
    if page == "all":
        of_themes = {theme: [name for name, each in verbs().items() if each.theme == theme] for theme in THEMES}
        lines = "\n".join(line for theme, of in of_themes.items() for line in (f"  {theme}", *map(_verb, of)))
        keys = "\n".join(_lines(KEYS, True, own).values())
        flags = _indent("\n".join([_MANY, _FLAGS, _PROCESSES, _STATUS]))
        return (
            f"verbs (default: run)\n{lines}\n\nkeys\n{_indent(keys)}\n\nflags\n{flags}\n\n"
            "python -m rbpx VERB --help explains one verb."
        )
    if page not in names():
        raise RbpxError(f"--help {page}: no such page; give all, or a verb: {', '.join(verbs())}")
    lesson = about(page)
    first, *examples = (f"    {line}" for line in lesson.examples)
    paragraphs = [textwrap.fill(text, 100, break_on_hyphens=False) for text in lesson.help.split("\n\n")]
    parts = [f"rbpx {page}: {lesson.summary}", first, *paragraphs]
    parts += ["more examples\n" + "\n".join(examples)] if examples else []
    parts += _keys_of(asking(page), isinstance(lesson, Analysis), own)
    measures = [_MANY, _PROCESSES] if "device" in asking(page).keys else []
    return "\n\n".join([*parts, "\n".join([*measures, "All keys and flags: python -m rbpx --help all"])])


def _first() -> str:
    some = [name for name in (*_FIRST, *_LAST) if name in verbs()]
    rest = [name for name in verbs() if name not in some]
    more = textwrap.fill(f"    and {', '.join(rest)}", _WIDTH, subsequent_indent="    ")
    return (
        f"{_BEGIN}\n\nverbs (default: run)\n" + "\n".join(map(_verb, some)) + f"\n{more}\n\n"
        f"keys, as key=value\n{_indent(_KEYS)}\n\n"
        f"{_MANY}\n"
        "python -m rbpx VERB --help explains one verb, python -m rbpx --help all lists everything."
    )


def _verb(name: str) -> str:
    return f"    {name:<11} {verbs()[name].summary}"


def _lines(keys: Mapping[str, Key], has_groups: bool, own: Sequence[Path]) -> dict[str, str]:
    """The line of each key that is explained, with `has_groups` those of groups behind their group."""
    lines = {}
    for key in (each for each in keys.values() if each.help):
        text = key.told
        for there, listed in _THERE.items():
            text = text.replace(there, listed(own)) if there in text else text
        lines[key.name] = _line(key.name, key.shown, text)
        of = key.group if has_groups else None
        inner = [] if of is None else [each for each in keys_of(of).values() if each.help]
        lines |= {f"{key.name}.{each.name}": _line(f"{key.name}.{each.name}", each.shown, each.help) for each in inner}
    return lines


def _keys_of(asked: Asking, narrows: bool, own: Sequence[Path]) -> list[str]:
    """Lists the keys of a verb: its own, those that narrow what a question (`narrows`) reads, and of the output."""
    lines = _lines(asked.keys, asked.is_of_grid, own)
    lines |= {"seed": lines.pop("seed")} if "seed" in lines and not asked.is_of_file else {}
    if "width" in lines:
        lines = {name: line for name, line in lines.items() if name not in LOOKS} | {"width": _LOOKS}
    groups: dict[str, list[str]] = {"keys": [], "which runs": [], "what is shown": []}
    for name, line in lines.items():
        of = "what is shown" if name in _SHOWN else "which runs" if narrows and name in _RUNS else "keys"
        groups[of].append(line)
    return [f"{heading}\n{_indent(chr(10).join(of))}" for heading, of in groups.items() if of]


def _line(name: str, shown: str, text: str) -> str:
    head = f"{f'{name}={shown}':<{_INDENT - 2}}  "
    return textwrap.fill(head + visible_line(text), _WIDTH, subsequent_indent=" " * _INDENT, break_on_hyphens=False)


def _joined(names: list[str]) -> list[str]:
    """Joins names in order, those that begin alike in braces, as in a shell: ladder_{optimum, seeds, surface}."""
    joined = []
    for stem, members in groupby(sorted(names), lambda name: name.partition("_")[0]):
        alike = list(members)
        rest = ", ".join(name.partition("_")[2] for name in alike)
        joined += [f"{stem}_{{{rest}}}"] if len(alike) >= _MANY_ALIKE else alike
    return joined


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))


# what the placeholders of a line mean
_THERE: Final[Mapping[str, Callable[[Sequence[Path]], str]]] = {
    "{models}": lambda own: ", ".join(options("model", own)),
    "{datasets}": lambda own: ", ".join(
        _joined([name for name in options("dataset", own) if name not in ("file", "hub")])
    ),
    "{experiments}": lambda own: ", ".join(_joined([*options("experiment", own)])),
}
