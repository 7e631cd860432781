"""A user's folder of configuration: its studies, models and texts work as ours do; what is refused."""

import shutil
from pathlib import Path

import pytest
import yaml

from rbpx.cli.help import help_text
from rbpx.errors import RbpxError
from tests.support.commands import Answer, here
from tests.support.composing import request_of
from tests.support.places import EXPERIMENTS


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder with a family, a text, a launcher and a study, whose paths start at the files that hold them."""
    return Path(shutil.copytree(Path(__file__).with_name("own"), tmp_path / "own"))


def refused(answer: Answer, *says: str) -> None:
    assert answer.returncode == 2, answer.stderr
    (line,) = answer.stderr.splitlines()
    assert [words for words in says if words not in line] == [], line


def of(own: Path, *words: str, verb: str = "run") -> object:
    """The request of these words and of the folder."""
    return request_of(verb, words, own)


def test_a_study_of_ones_own_chooses_files_of_ones_own(own: Path) -> None:
    request = of(own, "experiment=mystudy")
    assert (request.study.name, request.analyses, request.others["k"]) == ("mystudy", ["fit"], 10)
    ids = {size: config.id for size, config in request.model.sizes.items()}
    assert ids == {"a": f"{own}/weights/a", "b": f"{own}/model/b"}
    assert (request.dataset.name, request.dataset.path) == ("letters", f"{own}/dataset/letters.jsonl")


def test_a_study_is_recorded_into_its_own_file_from_a_file_beside_it(own: Path, cwd: Path, tmp_path: Path) -> None:
    ours = EXPERIMENTS / "published_one_law.yaml"
    path = Path(shutil.copy(ours, own / "experiment" / "theirs.yaml"))
    (own / "experiment" / "published").mkdir()
    numbers = own / "experiment" / "published" / "gpt2_wikipedia_rbp.csv"
    shutil.copy(EXPERIMENTS / "published" / numbers.name, numbers)
    before = ours.read_text()
    head, table = (part for part in before.split("# ---- findings"))
    words = ("record", "experiment=theirs", f"--config-dir={own}", "--store", tmp_path / "store")
    answer = here(*words, cwd=cwd, check=0)
    assert f"findings of theirs written to {path}" in answer.stderr
    assert path.read_text().startswith(head)
    assert path.read_text().split("\n#\n")[-1] == table.split("\n#\n")[-1], "the findings are those of ours"
    assert ours.read_text() == before
    numbers.unlink()
    answer = here(*words, cwd=cwd)
    refused(answer, str(numbers))


def test_what_there_is_includes_the_users_own(own: Path) -> None:
    assert "mystudy" in help_text("run", [own])
    assert "mystudy" not in help_text("run", [])
    for word, mine, ours in (
        ("experiment=nosuch", "mystudy", "rbp_figure_3"),
        ("dataset=nosuch", "letters", "pydoc"),
        ("model=nosuch", "mine", "pythia"),
    ):
        with pytest.raises(RbpxError) as problem:
            of(own, word)
        assert mine in str(problem.value)
        assert ours in str(problem.value)


def test_the_environment_names_the_folder_where_no_flag_does(own: Path, cwd: Path) -> None:
    asked = ("fit", "model=mine", "--cfg", "job")
    answer = here(*asked, cwd=cwd, env={"RBPX_CONFIG_DIR": str(own)}, check=0)
    assert answer.stdout == here(*asked, "--config-dir", own, cwd=cwd, check=0).stdout
    assert "weights/a" in answer.stdout
    refused(here(*asked, cwd=cwd, env={"RBPX_CONFIG_DIR": "/nosuch"}), "/nosuch is not a folder")


def test_a_file_of_the_user_replaces_ours_of_the_same_name(own: Path) -> None:
    (own / "model" / "mine.yaml").rename(own / "model" / "ladder.yaml")
    study = (own / "experiment" / "mystudy.yaml").read_text()
    (own / "experiment" / "demo.yaml").write_text(study.replace("mine", "ladder"))
    assert of(own, "model=ladder").model.family == "mine"
    assert of(own, "experiment=demo").model.family == "mine"
    assert request_of("plan", ["model=ladder"]).model.family == "ladder", "the folder is forgotten at once"


@pytest.mark.parametrize("words", [("measure", "model=ladder", "hydra/launcher=mine"), ("run", "experiment=mystudy")])
def test_a_launcher_of_ones_own_has_the_modules_that_it_loads_and_a_study_may_choose_it(
    words: tuple[str, ...], own: Path, cwd: Path
) -> None:
    study = own / "experiment" / "mystudy.yaml"
    study.write_text(study.read_text().replace("defaults:\n", "defaults:\n  - override /hydra/launcher: mine\n"))
    told = here(*words, "--config-dir", own, "--cfg", "hydra", cwd=cwd, check=0).stdout
    launcher = yaml.safe_load(told)["hydra"]["launcher"]
    assert launcher["_target_"].endswith("SlurmLauncher")
    assert (launcher["partition"], launcher["setup"]) == ("gpu", ["module purge", "module load cuda/12.1 gcc"])


# ------------------------------------------------------------------------------------------------------ what is missing


def test_a_missing_text_or_model_is_named_with_its_path_and_the_file_that_says_it(own: Path, cwd: Path) -> None:
    (own / "dataset" / "gone.yaml").write_text("name: gone\npath: ../texts/gone.jsonl\n")
    asked = ("size=3k", "--config-dir", own, "--store", own / "store")
    answer = here("measure", *asked, "model=ladder", "dataset=gone", cwd=cwd)
    refused(answer, f"{own}/texts/gone.jsonl is not a file")
    answer = here("plan", "model=mine", "dataset=letters", *asked[1:], cwd=cwd)
    refused(answer, f"{own}/weights/a")


def test_a_hub_id_is_no_path(own: Path) -> None:
    (own / "model" / "far.yaml").write_text("family: far\nsizes: {a: {id: ORG/NAME}, b: {id: 'rbpx:ladder/3k/8m'}}\n")
    request = of(own, "model=far", verb="plan")
    assert [size.id for size in request.model.sizes.values()] == ["ORG/NAME", "rbpx:ladder/3k/8m"]


def test_a_study_without_its_header_is_said_to_lack_it(own: Path) -> None:
    path = own / "experiment" / "mystudy.yaml"
    path.write_text(path.read_text().replace("# @package _global_\n", ""))
    with pytest.raises(RbpxError, match=r"mystudy.*# @package _global_"):
        of(own, "experiment=mystudy")
