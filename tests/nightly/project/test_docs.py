"""Hydra composes each command of the documentation that no other test runs."""

import re
import shlex
from pathlib import Path

import pytest
from ext.gallery import PICTURES
from generate import PART

from tests.support.commands import here
from tests.support.places import DOCS
from tests.support.shown import write_own_folder

PAGES = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)


def other_commands() -> list[str]:
    """Lines of rbpx in blocks that no test runs, because they need a hub, a cluster, or files of the reader."""
    found = []
    for page in PAGES:
        text = PART.sub("", page.read_text(encoding="utf-8"))  # examples of verbs are tested with the verbs
        for block in re.findall(r"```text\n(.*?)```", text, re.DOTALL):
            lines = block.replace("\\\n", " ").split("\n")
            found += [line[line.index("-m rbpx") :] for line in lines if "-m rbpx " in line and "..." not in line]
    found += [picture.command().removeprefix("python ") for picture in PICTURES]
    return sorted({line for line in found if not line.startswith("-m rbpx import")})  # which takes no `--cfg`


@pytest.mark.parametrize("command", other_commands())
def test_a_command_that_cannot_be_run_here_is_a_right_request(command: str, tmp_path: Path) -> None:
    words = [word for word in shlex.split(command)[2:] if word != "-m"]
    if "-m" in shlex.split(command)[2:]:  # Hydra shows the configuration of one job only
        words = [re.sub(r"=([^,\[]+),.*", r"=\1", word) for word in words]
    own = tmp_path / "own"
    write_own_folder(own)
    (tmp_path / "here").mkdir()
    answer = here(*words, "--config-dir", own, "--cfg", "job", cwd=tmp_path / "here", check=0)
    assert re.search("^(store: |source: |size: )", answer.stdout, re.MULTILINE)
