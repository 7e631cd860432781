"""From the hub into the store by command: the rows are those of the folder that was put there."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from transformers import AutoModelForCausalLM, AutoTokenizer

from rbpx.models.architecture import non_embedding_params
from tests.support.checkpoints import CONTEXT
from tests.support.commands import here
from tests.support.model_hub import Hub
from tests.support.reference import reference_rows
from tests.support.stores import cell_records, columns_of, manifests


def test_a_model_of_the_hub_is_measured_as_it_is_there(
    hub: Hub, tiny_checkpoint: Callable[..., Path], tiny_jsonl: Path, tiny_text: list[str], cwd: Path, tmp_path: Path
) -> None:
    store, folder = tmp_path / "store", tiny_checkpoint("opt", twins=8)
    commit = hub.add("org/tiny", folder)
    words = ("model=hub", "model.id=org/tiny", "dataset=file", f"dataset.path={tiny_jsonl}", "--store", store)
    here("measure", *words, cwd=cwd, check=0)
    ((run_id, facts),) = manifests(store).items()
    assert (facts["head"], facts["window"]) == ("identity", CONTEXT)
    (cell,) = cell_records(store)
    assert (cell["model"], cell["size"], cell["commit"]) == ("org/tiny", "tiny", commit)
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    rows, expected = columns_of(store / "runs" / run_id, "tokens"), []
    for doc_id, index in enumerate(np.random.default_rng(42).permutation(len(tiny_text))):
        ids = tokenizer(tiny_text[index])["input_ids"][:CONTEXT]
        expected += [(doc_id, *row) for row in reference_rows(model, ids, tokenizer.all_special_ids)]
    names = ("doc_id", "position", "token_id", "greater", "ties")
    for name, wanted in zip(names, zip(*(row[:-1] for row in expected), strict=True), strict=True):
        np.testing.assert_array_equal(rows[name], wanted, err_msg=name)
    np.testing.assert_allclose(rows["logprob"], [row[-1] for row in expected], rtol=0, atol=1e-4)


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
