"""Rows of whole documents: those of the plain loop in every batch, complete, in order, refused where they would lie."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from rbpx.data.corpus import Document
from rbpx.data.harness_windows import cut_as_harness
from rbpx.data.items import Part
from rbpx.data.windows import Window, cut_windows
from rbpx.errors import MeasureError, UnexpectedError
from rbpx.measure.distributed import ProcessGroup
from rbpx.measure.extract import COLUMNS, TokenColumns, measure_windows
from rbpx.measure.reading.batches import batch_windows
from rbpx.measure.reading.reading import Reading
from rbpx.models.load import LoadedModel
from tests.support.checkpoints import CONTEXT
from tests.support.measuring import (
    ALONE,
    FULL,
    assert_same_rows,
    check_many_documents,
    in_group,
    load,
    measure,
    plain_rows,
    small_memory,
)
from tests.support.reference import reference_rows

TWINS = 8
BUDGETS = [1, 64, 10**6]
SOME = ("gpt2", "opt", "opt350", "qwen2")


class Case(NamedTuple):
    """A checkpoint, the windows of some texts, and what the plain loop makes of them."""

    loaded: LoadedModel
    windows: list[Window]
    expected: list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def case(tiny_checkpoint: Callable[..., Path], tiny_text: list[str]) -> Callable[[str], Case]:
    made: dict[str, Case] = {}

    def build(arch: str) -> Case:
        if arch not in made:
            folder = tiny_checkpoint(arch, twins=TWINS)
            loaded = load(folder)
            windows = cut_windows([Document(i, str(i), t) for i, t in enumerate(tiny_text)], loaded.tokenizer, CONTEXT)
            made[arch] = Case(loaded, windows, plain_rows(folder, windows, loaded.tokenizer.all_special_ids))
        return made[arch]

    return build


# ---------------------------------------------------------------------------------------------------- the same rows


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("arch", SOME)
def test_a_document_at_a_time_and_padded_batches_give_the_rows_of_the_plain_loop(
    arch: str, budget: int, case: Callable[[str], Case]
) -> None:
    # The contract allows 1 token in 1,000 to move by rounding in another batch; among these few none does.
    loaded, windows, expected = case(arch)
    rows = measure(loaded, [windows[i] for i in (5, 2, 7, 0, 6, 1, 3, 4)], budget)
    assert_same_rows(rows, expected)
    assert (rows["ties"] > 0).sum() >= 10, "the twins should tie with the letters of the text"
    dtypes = {name: column.dtype for name, column in rows.items()}
    assert dtypes == dict.fromkeys(COLUMNS, np.dtype(np.int32)) | {"logprob": np.dtype(np.float32)}


def test_rows_of_many_documents_stay_within_the_contract_in_any_batch(tiny_checkpoint: Callable[..., Path]) -> None:
    check_many_documents(load(tiny_checkpoint("gpt_neox")))


def test_windows_without_a_scored_token_are_passed_over(case: Callable[[str], Case]) -> None:
    loaded, windows, _ = case("gpt2")
    silent = [window for window in windows if window.n_scored == 0]
    assert silent, "one of the texts is a single token"
    empty = Window(len(windows), np.empty(0, np.int32), np.empty(0, np.bool_), 0, 0)
    with small_memory(loaded.model, 10**9) as memory:
        assert len(measure(loaded, [*silent, empty], 64)["doc_id"]) == 0
    assert memory.tried == [], "the model is not run for nothing"


@pytest.mark.parametrize("budget", BUDGETS)
def test_equal_choices_are_measured_once_and_have_the_same_numbers_in_any_batch(
    budget: int, case: Callable[[str], Case]
) -> None:
    loaded, _, _ = case("gpt2")
    contexts = [f"{number} The sea" for number in ("one", "two", "three", "three")]  # two items are alike
    choices = (" reads", " reads nothing", " reads nothing", " ebbs", " reads")
    pairs = [(item, n, context, choice) for item, context in enumerate(contexts) for n, choice in enumerate(choices)]
    documents = [
        Document(at, str(item), context + choice, Part(item, n, n == 1, len(context), len(choice), len(choice)))
        for at, (item, n, context, choice) in enumerate(pairs)
    ]
    windows = cut_as_harness(documents, loaded.tokenizer, CONTEXT)
    ranked: list[int] = []
    advances: list[int] = []
    head = loaded.model.get_output_embeddings()
    hook = head.register_forward_hook(lambda module, args, logits: ranked.append(len(args[0])))
    try:
        rows = measure_windows(Reading(loaded, windows, ALONE, budget, advances.append))
    finally:
        hook.remove()
    of_text = {document.text: windows[document.doc_id].n_scored for document in documents}
    assert sum(ranked) == sum(of_text.values()), "each text once"
    assert sum(advances) == len(rows["doc_id"]) == sum(window.n_scored for window in windows)
    numbers: dict[str, list[tuple[float, ...]]] = {}
    for document, window in zip(documents, windows, strict=True):
        own = rows["doc_id"] == document.doc_id
        assert rows["position"][own].tolist() == np.flatnonzero(window.scored).tolist()
        assert rows["token_id"][own].tolist() == window.ids[window.scored].tolist()
        found = list(zip(*(rows[name][own].tolist() for name in ("greater", "ties", "logprob")), strict=True))
        assert numbers.setdefault(document.text, found) == found
        plain = reference_rows(loaded.model, window.ids.tolist(), [])
        expected = [row[2:] for row in plain if window.scored[row.position]]
        assert [row[:2] for row in found] == [row[:2] for row in expected]
        np.testing.assert_allclose([row[2] for row in found], [row[2] for row in expected], rtol=0, atol=1e-4)


# ---------------------------------------------------------------------------------------------------------- batches


def window_of(doc_id: int, n_tokens: int) -> Window:
    return Window(doc_id, np.ones(n_tokens, np.int32), np.arange(n_tokens) > 0, n_tokens, n_tokens)


@pytest.mark.parametrize("budget", [1, 7, 30, 64, 1000])
def test_batches_hold_every_window_once_longest_first_within_the_budget(budget: int) -> None:
    windows = [window_of(i, n) for i, n in enumerate([3, 30, 7, 30, 2, 11, 29, 5])]
    batches = list(batch_windows(windows, budget))
    lengths = [[len(w.ids) for w in batch] for batch in batches]
    assert [n for batch in lengths for n in batch] == [30, 30, 29, 11, 7, 5, 3, 2]
    assert sorted(w.doc_id for batch in batches for w in batch) == list(range(8))
    assert all(len(batch) == 1 or len(batch) * max(batch) <= budget for batch in lengths)
    assert all(sum(batch) >= 0.95 * len(batch) * max(batch) for batch in lengths)
    for batch, after in pairwise(lengths):
        n_padded = (len(batch) + 1) * batch[0]
        fits = n_padded <= budget and sum(batch) + after[0] >= 0.95 * n_padded
        assert not fits, f"{after[0]} would have fitted into the batch before"


# ------------------------------------------------------------------------------------------------- memory runs out


@pytest.mark.parametrize("kind", FULL)
def test_batches_that_do_not_fit_are_halved_and_the_rows_are_the_same(kind: str, case: Callable[[str], Case]) -> None:
    loaded, windows, expected = case("gpt2")
    longest = max(windows, key=lambda w: len(w.ids))  # alike in length, so that one batch takes them all
    windows = [replace(longest, doc_id=doc_id) for doc_id in range(8)]
    expected = [(doc_id, *row) for doc_id in range(8) for of, *row in expected if of == longest.doc_id]
    advances: list[int] = []
    with small_memory(loaded.model, 2 * CONTEXT + 1, FULL[kind]) as memory:
        rows = measure_windows(Reading(loaded, windows, ALONE, 10**6, advances.append))
    assert_same_rows(rows, expected)
    assert sum(advances) == len(rows["doc_id"]), "what was tried in vain is no progress"
    sizes = [n_rows * n_tokens for n_rows, n_tokens in memory.tried]
    refused = [size for size in sizes if size > memory.holds]
    assert refused, "memory should have run out"
    for at, size in enumerate(sizes):
        if size > memory.holds:
            later = [s for s, (n_rows, _) in list(zip(sizes, memory.tried, strict=True))[at + 1 :] if n_rows > 1]
            assert max(later, default=0) <= size // 2, "halved, and for good"
    assert len(refused) <= 4, "8 windows are halved to 1 in three steps"


def test_memory_that_runs_out_in_the_head_is_met_alike(case: Callable[[str], Case]) -> None:
    loaded, windows, expected = case("gpt_neox")
    tried: list[int] = []

    def refuse(module: Any, args: tuple[torch.Tensor, ...]) -> None:
        if args[0].ndim == 2:  # positions of a chunk, not windows
            tried.append(len(args[0]))
            if len(args[0]) > 70:
                raise torch.OutOfMemoryError("CUDA out of memory.")

    hook = loaded.model.get_output_embeddings().register_forward_pre_hook(refuse)
    try:
        rows = measure(loaded, windows, 10**6)
    finally:
        hook.remove()
    assert max(tried) > 70 > min(tried)
    assert_same_rows(rows, expected)


def test_a_single_window_that_does_not_fit_is_named(case: Callable[[str], Case]) -> None:
    loaded, windows, _ = case("gpt2")
    longest = max(windows, key=lambda w: len(w.ids))
    with small_memory(loaded.model, len(longest.ids) - 1), pytest.raises(MeasureError) as caught:
        measure(loaded, windows, 10**6)
    line = str(caught.value)
    assert f"{len(longest.ids)} tokens" in line
    assert f"document {longest.doc_id})" in line
    assert "CUDA out of memory" in line
    assert "\n" not in line


def test_another_failure_of_the_model_is_not_taken_for_a_lack_of_memory(case: Callable[[str], Case]) -> None:
    loaded, windows, _ = case("gpt2")
    with (
        small_memory(loaded.model, 100, lambda: RuntimeError("shapes do not match")) as memory,
        pytest.raises(UnexpectedError, match=r"tokens \(document \d\): RuntimeError: shapes do not match$") as caught,
    ):
        measure(loaded, windows, 10**6)
    assert len(memory.tried) == 1
    assert "in read_batch" in caught.value.traceback, "where it happened is kept"


# ------------------------------------------------------------------------------------------------ not finite logits


@contextmanager
def planted(loaded: LoadedModel, window: Window, at: int, value: float) -> Iterator[None]:
    """Puts `value` into the hidden state at one place of one document, whatever batch it is in."""
    seen: dict[str, torch.Tensor] = {}

    def look(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        seen["ids"] = kwargs["input_ids"]

    def plant(module: Any, args: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor] | None:
        if args[0].ndim != 3:
            return None
        states = args[0].clone()
        ids = torch.from_numpy(window.ids.astype(np.int64))
        for row, row_ids in enumerate(seen["ids"]):
            if torch.equal(row_ids[: len(ids)], ids):
                states[row, at] = value
        return (states,)

    hooks = [
        loaded.model.register_forward_pre_hook(look, with_kwargs=True),
        loaded.model.get_output_embeddings().register_forward_pre_hook(plant),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


@pytest.mark.parametrize("value", [float("nan"), float("inf")], ids=str)
@pytest.mark.parametrize("budget", [1, 10**6])
def test_logits_that_are_not_finite_are_refused_with_their_document_and_position(
    budget: int, value: float, case: Callable[[str], Case]
) -> None:
    loaded, windows, _ = case("gpt2")
    window = windows[4]
    with planted(loaded, window, 6, value), pytest.raises(MeasureError) as caught:
        measure(loaded, windows, budget)
    line = str(caught.value)
    assert re.search(r"document 4, position 7\b", line)  # the state at 6 predicts 7
    assert loaded.name in line


@pytest.mark.parametrize("budget", [1, 10**6])
def test_a_state_that_predicts_nothing_scored_may_be_anything(budget: int, case: Callable[[str], Case]) -> None:
    loaded, windows, expected = case("gpt2")
    window = windows[5]
    special = loaded.tokenizer.convert_tokens_to_ids("<|endoftext|>")
    behind_special = window.ids.tolist().index(special)
    for at in (len(window.ids) - 1, behind_special):
        with planted(loaded, window, at, float("nan")):
            assert_same_rows(measure(loaded, windows, budget), expected)


# ------------------------------------------------------------------------------------------- several processes' shares


def test_every_process_returns_all_rows_where_there_are_more_than_documents(
    case: Callable[[str], Case], tiny_checkpoint: Callable[..., Path]
) -> None:
    _, windows, expected = case("gpt2")
    models = [load(tiny_checkpoint("gpt2", twins=TWINS)) for _ in range(11)]
    advances: list[int] = []
    results = in_group(
        11,
        lambda processes: measure_windows(Reading(models[processes.rank], windows, processes, 200, advances.append)),
    )
    for rows in results:
        assert isinstance(rows, dict), rows
        assert_same_rows(rows, expected)
    assert sum(advances) == len(expected), "each token is measured by one process"


def test_a_failure_in_one_process_is_raised_alike_in_all(
    case: Callable[[str], Case], tiny_checkpoint: Callable[..., Path]
) -> None:
    _, windows, _ = case("gpt2")
    models = [load(tiny_checkpoint("gpt2", twins=TWINS)) for _ in range(3)]

    def work(processes: ProcessGroup) -> TokenColumns:
        with planted(models[processes.rank], windows[4], 6, float("nan")):
            return measure(models[processes.rank], windows, 200, processes)

    results = in_group(3, work)
    assert [type(result) for result in results] == [MeasureError] * 3
    assert len({str(result) for result in results}) == 1
    assert re.search(r"document 4, position 7\b", str(results[0]))
