"""What a page shows beside what its commands print here, on other texts: the names in it, not digits or sentences."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from rbpx.cli.registry import asking, names
from tests.support.demo import in_python, run
from tests.support.places import DOCS, PROJECT


def commands_of(page: str) -> list[str]:
    """The lines of the blocks of a page that are typed."""
    return [line for block in re.findall(r"```bash\n(.*?)```", page, re.S) for line in block.strip().split("\n")]


def write_own_folder(folder: Path) -> None:
    """Write the configuration that pages tell their reader to write: on a cluster, for a family, for a dataset."""
    page = (DOCS / "howto" / "my-cluster.md").read_text(encoding="utf-8")
    files = dict(re.findall(r"```yaml\n# cfg/(\S+)\n(.*?)```", page, re.S))
    added = {"model/schooner.yaml", "dataset/letters.yaml"}
    files |= {name: (DOCS / "examples" / Path(name).name).read_text(encoding="utf-8") for name in added}
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def of_many(commands: Sequence[str]) -> bool:
    """Whether these commands measure more than a model a size, for which tests take a store with fewer texts."""
    return any("model.revision=all" in command for command in commands)


def labels(text: str) -> list[str]:
    """The first words of each line of a table, not digits, which depend on the texts; a rule has any length."""
    lines = re.sub("─+", "─", text).split("\n")
    return [re.split(r"\s{2,}", line.strip())[0] for line in lines if line.startswith(" ")]


def with_few_resamples(words: list[str]) -> list[str]:
    """The words of a command, with few replicates where it fits: its rows do not depend on how many, its time does."""
    verb = next((word for word in words if word in names()), "run")
    fits = "resamples" in asking(verb).keys
    settled = {"--cfg", "--help"} & set(words) or any(word.startswith("resamples=") for word in words)
    return [*words, "resamples=25"] if fits and not settled else words


def _here(command: str) -> str:
    """A command whose files of the checkout are named from anywhere."""
    return command.replace(" experiments/", f" {PROJECT}/experiments/")


def compare_with_shown(commands: Sequence[str], shown: str, store: Path, cwd: Path, few: Mapping[str, int]) -> None:
    """Run the commands of a block; what is shown below them has the labels of what the last one prints."""
    done = [run(with_few_resamples(in_python(_here(command))), cwd, store, dict(few)) for command in commands]
    assert [each.returncode for each in done] == [0] * len(done), done[-1].stderr
    printed = done[-1].stdout
    assert [label for label in labels(shown) if label not in labels(printed)] == []
    assert re.search(r"\d", shown)
