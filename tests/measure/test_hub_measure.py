"""From the hub into the store by command: the rows are those of the folder that was put there."""

from collections.abc import Callable
from pathlib import Path

from transformers import AutoModelForCausalLM

from rbpx.models.architecture import non_embedding_params
from tests.support.checkpoints import CONTEXT
from tests.support.commands import here
from tests.support.hub import Hub
from tests.support.stores import cell_records, manifests


def test_a_model_of_the_hub_is_the_folder_that_was_put_there(
    hub: Hub, tiny_checkpoint: Callable[..., Path], tiny_jsonl: Path, cwd: Path, tmp_path: Path
) -> None:
    store, folder = tmp_path / "store", tiny_checkpoint("opt")
    commit = hub.add("org/tiny", folder)
    words = ("measure", "model=hub", "dataset=file", f"dataset.path={tiny_jsonl}", "--store", store)
    here(*words, "model.id=org/tiny", cwd=cwd, check=0)
    (facts,) = manifests(store).values()
    assert (facts["head"], facts["window"]) == ("identity", CONTEXT)
    (cell,) = cell_records(store)
    assert (cell["model"], cell["size"], cell["commit"]) == ("org/tiny", "tiny", commit)
    here(*words, f"model.id={folder}", cwd=cwd, check=0)
    assert [*manifests(store)] == [facts["run_id"]], "its run answers for the folder too"
    assert len(cell_records(store)) == 2


def test_a_model_that_is_not_there_leaves_nothing_in_status(
    hub: Hub, tiny_checkpoint: Callable[..., Path], tiny_jsonl: Path, cwd: Path, tmp_path: Path
) -> None:
    hub.add("org/tiny", tiny_checkpoint("gpt2"))
    text = ("dataset=file", f"dataset.path={tiny_jsonl}", "limit=2", f"store={tmp_path / 's'}")
    for words, status in (
        (("model.id=org/tinny",), 2),
        (("model.id=org/tiny", "model.revision=step1x"), 2),
        (("model.id=[org/tiny,org/tinny,./nosuch]", "model.family=mine"), 1),
    ):
        assert "not" in here("measure", "model=hub", *words, *text, cwd=cwd, check=status).stderr
    assert [cell["size"] for cell in cell_records(tmp_path / "s")] == ["tiny"]
    assert not list((tmp_path / "s" / "failures").glob("*.json"))


def test_a_known_family_whose_model_has_another_S_is_refused_with_both_counts(
    hub: Hub, tiny_checkpoint: Callable[..., Path], tiny_jsonl: Path, cwd: Path, tmp_path: Path
) -> None:
    folder = tiny_checkpoint("gpt2")
    hub.add("openai-community/gpt2", folder)
    counted = non_embedding_params(AutoModelForCausalLM.from_pretrained(folder))
    words = ["model=gpt2", "size=gpt2", "dataset=file", f"dataset.path={tiny_jsonl}", f"store={tmp_path / 's'}"]
    told = here("measure", *words, cwd=cwd, check=2).stderr.splitlines()
    (line,) = [line for line in told if line.startswith("rbpx: ")]
    assert f"{counted:,}" in line
    assert "85,056,000" in line
