"""What README and documentation promise: verbs, make targets and kinds of commands. `make nightly` runs each."""

import re
import subprocess

from rbpx.cli.registry import names
from tests.support.places import DOCS, PROJECT
from tests.support.shown import commands_of

README = (PROJECT / "README.md").read_text(encoding="utf-8")
PAGES = [README, *(path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md") if "_build" not in path.parts)]
COMMANDS = {command for page in PAGES for command in commands_of(page)}


def test_every_verb_is_told_in_the_readme() -> None:
    assert [verb for verb in names() if f"`{verb}`" not in README] == []


def test_a_make_target_that_is_shown_exists() -> None:
    targets = {target for command in COMMANDS if command.startswith("make") for target in command.split()[1:]}
    targets = {target for target in targets if "=" not in target}
    assert {"check", "demo", "test"} <= targets
    known = re.findall(r"^(\w+):", (PROJECT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert targets <= set(known)
    subprocess.run(["make", "-n", *sorted(targets)], cwd=PROJECT, check=True, capture_output=True)
