"""The documentation: its links lead somewhere, what the code says is in it, its other commands are right requests."""

import re
import shlex
from pathlib import Path

import pytest
import yaml
from ext import meanings
from ext.gallery import PICTURES
from ext.generated import MARK, PARTS, fill
from ext.markdown import plain

from rbpx.cli.registry import names
from rbpx.config.places import folder
from rbpx.config.request import KEYS
from rbpx.laws.names import LAWS
from rbpx.status import Status
from rbpx.store import schema
from rbpx.store.sql.relations import BY_FILE
from tests.support.commands import here
from tests.support.places import DOCS, PROJECT

PAGES = [PROJECT / "README.md", *sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)]
RELATIONS = {name: getattr(schema, name.upper()) for name in meanings.RELATIONS} | BY_FILE
WHOLE = {path.relative_to(DOCS).as_posix(): fill(path.read_text(encoding="utf-8")) for path in PAGES[1:]}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_a_link_within_the_project_leads_to_a_file(page: Path) -> None:
    text = fill(page.read_text(encoding="utf-8"))
    places = [place for place in re.findall(r"\]\(([^)\s#]+)[^)]*\)", text) if not place.startswith("http")]
    assert [place for place in places if not (page.parent / place).exists()] == []


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda path: path.name)
def test_a_file_that_a_page_names_is_in_the_project(page: Path) -> None:
    named = re.findall(r"\{file\}`([^`]+)`", page.read_text(encoding="utf-8"))
    made_by_the_reader = (
        "reciprocal_rank.py",
        "schooner.yaml",
        "letters.yaml",
        "quiz.yaml",
        "typical/",
        "ln_ranks.sql",
    )
    absent = [name for name in named if not (PROJECT / name).exists()]
    assert [name for name in absent if not name.endswith(made_by_the_reader)] == []


def test_every_page_is_in_the_table_of_contents() -> None:
    listed = set(re.findall(r"^([\w/-]+)$", WHOLE["index.md"], re.MULTILINE))
    assert {page.removesuffix(".md") for page in WHOLE} - {"index"} == listed


def test_every_generated_part_has_a_page() -> None:
    used = [name for page in PAGES[1:] for name in MARK.findall(page.read_text(encoding="utf-8"))]
    assert sorted(used) == sorted(PARTS)


@pytest.mark.parametrize("relation", RELATIONS)
def test_every_column_of_a_relation_has_a_meaning(relation: str) -> None:
    for column in RELATIONS[relation]:
        row = f"| `{column.name}` | {plain(column.type)} | {plain(meanings.COLUMNS[column.name])} |"
        assert row in WHOLE["reference/store.md"]


def test_no_meaning_is_of_a_column_that_is_gone() -> None:
    assert set(meanings.COLUMNS) == {column.name for columns in RELATIONS.values() for column in columns}


def test_every_law_and_status_is_explained() -> None:
    assert [law for law in LAWS if f"`{law}`" not in WHOLE["reference/laws.md"]] == []
    assert [status for status in Status if plain(status.remedy) not in WHOLE["reference/statuses.md"]] == []


def test_every_verb_and_key_is_looked_up() -> None:
    assert [verb for verb in names() if f"\n## {verb}\n" not in WHOLE["reference/verbs.md"]] == []
    assert [key for key in KEYS if key not in WHOLE["reference/keys.md"]] == []


@pytest.mark.parametrize(("group", "page"), [("model", "families"), ("dataset", "datasets")])
def test_every_family_and_dataset_is_looked_up(group: str, page: str) -> None:
    text = WHOLE[f"reference/{page}.md"]
    for path in (folder("conf") / group).glob("*.yaml"):
        assert f"\n## {path.stem}\n" in text
        for size, about in (yaml.safe_load(path.read_text()).get("sizes") or {}).items():
            assert f"`{size}`" in text
            assert f"`{about['id']}`" in text


def test_every_question_in_sql_is_looked_up() -> None:
    paths = sorted((PROJECT / "rbpx").rglob("*.sql"))
    assert len(paths) > 20
    for path in paths:
        assert f"\n## {path.stem}\n" in WHOLE["reference/sql.md"]
        assert path.read_text(encoding="utf-8").strip().splitlines()[-1] in WHOLE["reference/sql.md"]


def test_text_of_the_code_means_nothing_to_markdown() -> None:
    assert plain("a_b *c* `x|y` $d$ <e> `f_g`") == r"a\_b \*c\* \`x\|y\` \$d\$ \<e\> `f_g`"
    assert plain(None) == "–"


def other_commands() -> list[str]:
    """Lines of rbpx in blocks that no test runs, because they need a hub, a cluster, or files of the reader."""
    found = []
    for page in PAGES[1:]:
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"```text\n(.*?)```", text, re.DOTALL):
            lines = block.replace("\\\n", " ").split("\n")
            found += [line[line.index("-m rbpx") :] for line in lines if "-m rbpx " in line and "..." not in line]
    found += [picture.command().removeprefix("python ") for picture in PICTURES]
    return sorted(set(found))


@pytest.mark.parametrize("command", other_commands())
def test_a_command_that_cannot_be_run_here_is_a_right_request(command: str, tmp_path: Path) -> None:
    words = [word for word in shlex.split(command)[2:] if word != "-m"]
    if "-m" in shlex.split(command)[2:]:  # Hydra shows the configuration of one job only
        words = [re.sub(r"=([^,\[]+),.*", r"=\1", word) for word in words]
    own = tmp_path / "own"
    files = ("model/schooner", "model/mine", "dataset/letters", "dataset/notes", "experiment/mystudy")
    for name in (*files, "hydra/launcher/gpu", "hydra/launcher/here"):
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / f"{name}.yaml").write_text((DOCS / "examples" / f"{Path(name).name}.yaml").read_text())
    (tmp_path / "here").mkdir()
    answer = here(*words, "--config-dir", own, "--cfg", "job", cwd=tmp_path / "here", check=0)
    assert re.search("^(store: |source: |size: )", answer.stdout, re.MULTILINE)
