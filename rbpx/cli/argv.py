"""The words of a command line in; verb, Hydra's overrides and flags, and what is left over out."""

import re
from dataclasses import dataclass

from rbpx.cli.registry import names, takes_words, verbs
from rbpx.config.hydra.trust import FLAG as TRUST
from rbpx.config.options import did_you_mean, near
from rbpx.config.overrides import quoted
from rbpx.config.request import KEYS
from rbpx.errors import RbpxError
from rbpx.questions.registry import refuse_gone

_OURS = ("format", "store", "output")


_PLACES = rf"({'|'.join(_OURS)}|fresh|spreadsheet|hydra[^=]*)="


_SWITCHES = {"-m", "--multirun", "-r", "--run", "--resolve", "-sc", "--shell-completion"}


_VALUED = {"-c", "--cfg", "-p", "--package", "-cd", "--config-dir", "-cn", "--config-name"}


_INFO = {"all", "config", "defaults", "defaults-tree", "plugins", "searchpath"}


_CFG = ("job", "hydra", "all")


FLAGS = (
    "--format",
    "--store",
    "--output",
    "--details",
    "--multirun",
    "--cfg",
    "--config-dir",
    TRUST,
    "--info",
    "--help",
    "--version",
)


_ELSEWHERE = {
    **dict.fromkeys(("-v", "-V", "version"), "--version"),
    **dict.fromkeys(("help", "-?", "--usage"), "--help"),
    **dict.fromkeys(("-f", "--json"), "--format json"),
    **dict.fromkeys(("-cp", "--config-path"), "--config-dir DIR"),  # Hydra's own: it would hide what is in conf/
    "--csv": "--format csv",
    "-o": "--output FILE",
    "-s": "--store DIR",
}  # what other tools call them


_OVERRIDE = re.compile(r"[+~]{0,2}[A-Za-z_][\w./@:-]*=")


@dataclass(frozen=True)
class CommandLine:
    """What was typed, sorted.

    Attributes:
        verb: what to do.
        words: a verb's own words: the query of sql, the id of show, the action of store.
        hydra: overrides and flags for Hydra.
        help: whether help was asked for.
        version: whether the version was asked for.
        trusts_config: whether files of configuration and overrides may name code.
    """

    verb: str
    words: tuple[str, ...]
    hydra: tuple[str, ...]
    help: bool
    version: bool
    trusts_config: bool = False

    @property
    def sweeps(self) -> bool:
        """Whether several jobs are asked for."""
        return bool({"-m", "--multirun"} & set(self.hydra))

    @property
    def changes_of_study(self) -> list[str]:
        """Overrides that change what a study gives, not where it is or how fast it comes."""
        same = (
            "experiment",
            "store",
            "output",
            "format",
            "device",
            "tokens_per_batch",
            "sql_timeout_s",
            "sql_memory_mib",
        )
        overrides = [o for o in self.hydra if "=" in o and not o.startswith(("hydra", "-"))]
        return [o for o in overrides if o.split("=")[0].lstrip("+~") not in same]

    @property
    def narrowing(self) -> str:
        """What was typed to choose among the runs, and how to look at them."""
        return " ".join(o for o in self.hydra if re.match(rf"(?!{_PLACES})[\w.+~]+=", o))


def parse(argv: list[str]) -> CommandLine:
    """Sort the words of a command line; our own flags become overrides, under every verb.

    Raises:
        RbpxError: an unknown verb or flag, a flag without its value, or a word where none belongs.
    """
    verb: str | None = None
    words: list[str] = []
    flags: list[str] = []
    overrides: list[str] = []
    pages: set[str] = set()
    trusts = False
    rest = list(argv)
    completes = {"-sc", "--shell-completion"}
    while rest:
        word = rest.pop(0)
        flag, _, value = word.partition("=")
        if flag.startswith("--") and flag[2:] in _OURS:
            given = value if "=" in word else rest.pop(0) if rest else ""
            if not given:
                raise RbpxError(f"{flag} needs a value, as in {flag} {'json' if flag == '--format' else 'PATH'}")
            overrides.append(f"{flag[2:]}={quoted(given)}")
        elif word in ("-h", "--help", "--version"):
            pages.add(word)
        elif word == TRUST:
            trusts = True
        elif word == "--dry-run" and verb == "import":
            overrides.append("dry_run=true")
        elif word == "--details":
            overrides.append("details=true")
        elif word in ("--plot", "plot=true"):
            raise RbpxError(f"{word} is gone; in its place: --format svg --output FOLDER, or --format html")
        elif flag in _VALUED:
            flags.append(word)
            if not value and rest:
                flags.append(rest.pop(0))
            if flag in ("-c", "--cfg") and flags[-1].removeprefix("--cfg=") not in _CFG:
                raise RbpxError(f"{flag} {flags[-1]} is unknown; known: {', '.join(_CFG)}, as in --cfg job")
        elif word in ("-i", "--info"):
            flags += [word, rest.pop(0) if rest and rest[0] in _INFO else "all"]
        elif word in _SWITCHES or word.startswith(("--hydra-help", "--info=")):
            flags.append(word)
        elif word.startswith("-") and len(word) > 1 and not word[1:2].isspace() and verb not in ("sql", "export"):
            raise RbpxError(f"unknown flag {word}; {_flag_advice(flag, value, rest)}see python -m rbpx --help")
        elif _OVERRIDE.match(word) or re.match(r"~[A-Za-z]", word) or completes.intersection(flags):
            overrides.append(word)
        elif verb is None:
            verb = _known_verb(word)
        elif takes_words(verb):
            words.append(word)
        else:
            advice = _word_advice(word) or f"{verb} takes overrides such as model=ladder size=25k"
            raise RbpxError(f"{word!r} is not a key=value; {advice}")
    ways = [f for f in flags if f.split("=")[0] in {"-m", "--multirun", "-r", "--run", "-c", "--cfg", "-i", "--info"}]
    if len(ways) > 1:
        raise RbpxError(f"{ways[0]} and {ways[1]} ask for two ways of running; give one of them")
    helps = bool(pages & {"-h", "--help"})
    # Hydra's parser wants its flags before the overrides, people write them anywhere.
    return CommandLine(verb or "run", tuple(words), (*flags, *overrides), helps, "--version" in pages, trusts)


def _known_verb(word: str) -> str:
    if word in names():
        return word
    refuse_gone(word)
    meant = near(word, names())
    hint = _word_advice(word) or (f"did you mean '{meant}'?" if meant else f"known: {', '.join(verbs())}.")
    raise RbpxError(f"unknown verb {word!r}; {hint} Overrides look like key=value; see python -m rbpx --help")


def _flag_advice(flag: str, value: str, rest: list[str]) -> str:
    """What an unknown flag is called here: keys have no dashes, and some flags another name."""
    key = flag.lstrip("-").replace("-", "_")
    if flag in _ELSEWHERE:
        return f"did you mean {_ELSEWHERE[flag]}? "
    if key in KEYS:
        follows = value or next((word for word in rest[:1] if "=" not in word and not word.startswith("-")), "VALUE")
        return f"a key has no dashes: {key}={follows}; "
    if key in names():
        return f"a verb has no dashes: python -m rbpx {key}; "
    return did_you_mean(flag, FLAGS)


def _word_advice(word: str) -> str | None:
    """What a word without = may have been meant as: a flag of other tools, a key, or the name of a model or text."""
    from rbpx.config.places import folder

    if word in _ELSEWHERE:
        return f"did you mean {_ELSEWHERE[word]}?"
    if word in KEYS:
        return f"write {word}=VALUE, without blanks."
    groups = [group for group in ("model", "dataset") if (folder("conf") / group / f"{word}.yaml").is_file()]
    return f"did you mean {groups[0]}={word}, without blanks?" if groups else None
