"""Sorts the words of a command line into verb, overrides and flags."""

import argparse
import os
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from rbpx.cli.registry import names, takes_words, verbs
from rbpx.config.folders import options
from rbpx.config.options import did_you_mean, near
from rbpx.config.request import KEYS
from rbpx.config.texts import quoted
from rbpx.errors import RbpxError
from rbpx.files.escapes import visible_line
from rbpx.questions.registry import refuse_removed

_OVERRIDE: Final = re.compile(r"[+~]{0,2}[A-Za-z_][\w./@:-]*=|~[A-Za-z]")
_OURS: Final = ("format", "store", "output")  # keys that are also flags
_SAME: Final = ("experiment", *_OURS, "device", "tokens_per_batch", "sql_timeout_s", "sql_memory_mib")
_OF_HYDRA: Final = ("cfg", "info", "package", "resolve", "hydra_help", "shell_completion")  # flags that print
_HIDDEN: Final = (*_OURS, "spreadsheet")  # keys that choose no runs


@dataclass(frozen=True)
class CommandLine:
    """The sorted words of a command line.

    Attributes:
        words: a verb's own: the query of sql, the id of show, the action of store.
        flags: of Hydra, which print something instead of running.
        sweeps: whether lists are jobs.
        own: the folder of the user's configuration.
        help: the page asked for: empty, `all`, or a verb; None without --help.
    """

    verb: str
    words: tuple[str, ...]
    overrides: tuple[str, ...]
    flags: tuple[str, ...] = ()
    sweeps: bool = False
    own: Path | None = None
    help: str | None = None
    version: bool = False

    @property
    def changes_of_study(self) -> list[str]:
        """Overrides that change a study's result, not where or how fast it is computed."""
        return [each for each in self.overrides if _key(each) not in _SAME and not each.startswith("hydra")]

    @property
    def narrowing(self) -> str:
        """Overrides that choose runs, and how they are read."""
        keys = {each: _key(each) for each in self.overrides}
        return " ".join(each for each, key in keys.items() if key not in _HIDDEN and not key.startswith("hydra"))

    def retyped(self, verb: str, drops: Callable[[str], bool]) -> str:
        """The command for another verb with these overrides, without keys that it `drops`."""
        kept = [each for each in self.overrides if not drops(_key(each))]
        own = [] if self.own is None else ["--config-dir", str(self.own)]
        return shlex.join(["python", "-m", "rbpx", verb, *(["-m"] if self.sweeps else []), *own, *kept])


def _key(override: str) -> str:
    return override.partition("=")[0].lstrip("+~")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Called by argparse."""
        flag = next((word for word in message.split() if word.startswith("-") and word.strip("-:")), "")
        name = flag.strip("-").partition("=")[0].replace("-", "_")
        if message.startswith("unrecognized") and name in KEYS:
            raise RbpxError(f"a key has no dashes: {name}=VALUE, not {flag}")
        if message.startswith("unrecognized"):
            hint = did_you_mean(flag, [known for each in self._actions for known in each.option_strings])
            raise RbpxError(f"unknown flag {flag}; {hint}see python -m rbpx --help")
        raise RbpxError(f"{message}; see python -m rbpx --help")


def _parser() -> _Parser:
    parser = _Parser(prog="rbpx", add_help=False, allow_abbrev=False)
    parser.add_argument("words", nargs="*")
    for name in _OURS:
        parser.add_argument(f"--{name}")
    parser.add_argument("--config-dir", "-cd", default=os.environ.get("RBPX_CONFIG_DIR"))
    parser.add_argument("--help", "-h", nargs="?", const="")
    for name in ("--version", "--details", "--dry-run"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("--multirun", "-m", action="store_true")
    parser.add_argument("--run", "-r", action="store_true")
    # Hydra's own flags, which print, are passed on as they are.
    parser.add_argument("--cfg", "-c", choices=("job", "hydra", "all"))
    parser.add_argument("--info", "-i", nargs="?", const="all")
    parser.add_argument("--package", "-p")
    for name in ("--resolve", "--hydra-help"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("--shell-completion", "-sc", action="store_true")
    return parser


def flags() -> tuple[str, ...]:
    """The flags of every verb, for completion."""
    return tuple(each.option_strings[0] for each in _parser()._actions if each.option_strings)


def parse(argv: Sequence[str]) -> CommandLine:
    """Sorts the words of a command line; our own flags become overrides; raises RbpxError for a word that is wrong."""
    for word in argv:
        if re.search("[\ud800-\udfff]", word) and not os.path.exists(word.partition("=")[2] or word):
            raise RbpxError(f"{visible_line(word)} is not UTF-8 text; type it anew")
    typed = _parser().parse_intermixed_args(list(argv))
    verb, words, overrides = None, [], []
    for word in typed.words:
        if _OVERRIDE.match(word) or typed.shell_completion:
            overrides.append(word)
        elif verb is None:
            verb = _known_verb(word)
        elif takes_words(verb):
            words.append(word)
        else:
            refuse_removed(f"{verb} FILE")
            raise RbpxError(f"{word!r} is not a key=value; {_word_advice(word)}")
    overrides += [f"{name}={quoted(getattr(typed, name))}" for name in _OURS if getattr(typed, name) is not None]
    overrides += [f"{name}=true" for name in ("details", "dry_run") if getattr(typed, name)]
    own = None if not typed.config_dir else Path(typed.config_dir).expanduser()
    if own is not None and not own.is_dir():
        raise RbpxError(f"--config-dir {own} is not a folder; name the one with your model/ and dataset/")
    page = verb if typed.help == "" and verb is not None else typed.help
    given = {f"--{name.replace('_', '-')}": getattr(typed, name) for name in _OF_HYDRA}
    printing = tuple(flag if value is True else f"{flag}={value}" for flag, value in given.items() if value)
    return CommandLine(
        verb or "run", tuple(words), tuple(overrides), printing, typed.multirun, own, page, typed.version
    )


def _known_verb(word: str) -> str:
    if word not in names():
        refuse_removed(word)
        meant = near(word, names())
        hint = f"did you mean {meant!r}" if meant else _word_advice(word)
        raise RbpxError(f"unknown verb {word!r}; {hint}; see python -m rbpx --help")
    return word


def _word_advice(word: str) -> str:
    if word in KEYS:
        return f"write {word}=VALUE, without blanks"
    group = next((group for group in ("model", "dataset") if word in options(group)), None)
    return f"did you mean {group}={word}" if group else f"verbs: {', '.join(verbs())}"
