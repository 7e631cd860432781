"""Which special tokens begin a text: what is read and scored under each policy, and which runs are the same."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from rbpx.config.options import Bos
from rbpx.data.corpus import Document
from rbpx.data.windows import acting_bos, cut_windows
from rbpx.errors import RbpxError
from tests.support.checkpoints import TINY_TEXT, build_tokenizer
from tests.support.commands import here
from tests.support.stores import cell_records, manifests

HAVE_A_BOS = ("gpt2", "opt", "gpt_neox")


@pytest.mark.parametrize("arch", HAVE_A_BOS)
@pytest.mark.parametrize("window", [2, 7, 10_000])
def test_windows_begin_as_the_policy_says(arch: str, window: int) -> None:
    tokenizer = build_tokenizer(arch)
    documents = [Document(n, str(n), text) for n, text in enumerate(TINY_TEXT)]
    for bos, first in ((Bos.add, [tokenizer.bos_token_id]), (Bos.none, [])):
        for cut, text in zip(cut_windows(documents, tokenizer, window, bos), TINY_TEXT, strict=True):
            of_text = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text))
            assert cut.ids.tolist() == (first + of_text)[:window]
            special = [token in tokenizer.all_special_ids for token in cut.ids]
            plain = [not before and not this for before, this in pairwise(special)]
            assert cut.scored.tolist() == [False, *plain]


def test_a_bos_is_read_and_costs_no_scored_token_but_the_last_that_no_longer_fits() -> None:
    """GPT-2's first token has no predecessor, and with a BOS it has one that is special: never scored."""
    tokenizer, documents = build_tokenizer("gpt2"), [Document(0, "0", TINY_TEXT[0])]
    (own,), (with_bos,) = (cut_windows(documents, tokenizer, 10_000, bos) for bos in (Bos.tokenizer, Bos.add))
    assert own.scored[1:].all()
    assert with_bos.scored.tolist() == [False, *own.scored.tolist()]
    assert (with_bos.n_bytes, with_bos.n_bytes_scored) == (own.n_bytes, own.n_bytes_scored)
    assert cut_windows(documents, tokenizer, 10, Bos.add)[0].n_scored == 8


def test_a_policy_acts_where_it_changes_tokens() -> None:
    acts = {(arch, bos.value): acting_bos(build_tokenizer(arch), bos).value for arch in HAVE_A_BOS for bos in Bos}
    changed = {request for request, acting in acts.items() if acting != "tokenizer"}
    assert changed == {("gpt2", "add"), ("gpt_neox", "add"), ("opt", "none")}
    assert all(acts[request] == request[1] for request in changed)


def test_a_bos_is_not_made_up_for_a_tokenizer_without_one() -> None:
    with pytest.raises(RbpxError, match=r"model\.bos=add"):
        acting_bos(build_tokenizer("qwen2"), Bos.add)


def test_policies_that_give_the_same_tokens_are_one_run_and_others_are_not(
    tiny_checkpoint: Callable[..., Path], tiny_jsonl: Path, cwd: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    words = ("model=hub", f"model.id={tiny_checkpoint('opt')}", "dataset=file", f"dataset.path={tiny_jsonl}", "limit=4")
    here("measure", "-m", *words, "model.bos=tokenizer,add,none", "--store", store, cwd=cwd, check=0)
    runs = {cell["config"]["model"]["bos"]: cell["run_id"] for cell in cell_records(store)}
    assert len(runs) == 3, "a cell each"
    assert runs["tokenizer"] == runs["add"] != runs["none"]
    bos = {run_id: facts["bos"] for run_id, facts in manifests(store).items()}
    assert bos == {runs["add"]: "tokenizer", runs["none"]: "none"}
