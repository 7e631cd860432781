"""What items begin with alike is read once: rows are those of each window read alone, and far fewer tokens are read."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

from rbpx.data.corpus import Document
from rbpx.data.harness_windows import cut_as_harness
from rbpx.data.windows import Window, cut_windows
from rbpx.measure.distributed import ProcessGroup
from rbpx.measure.extract import TokenColumns, measure_windows
from rbpx.measure.reading.batches import batch_windows
from rbpx.measure.reading.branches import branches, read_once, stem_batches
from rbpx.measure.reading.reading import Reading
from rbpx.models.load import LoadedModel, load_model
from tests.support.checkpoints import CONTEXT
from tests.support.items import (
    CHOICES,
    CONTINUE,
    EXAMPLES,
    QUESTIONS,
    assert_as_alone,
    build_shape,
    check_items_as_if_alone,
    counted,
    documents,
)
from tests.support.measuring import ALONE, in_group, measure, small_memory


@pytest.fixture(scope="module")
def shaped(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], LoadedModel]:
    return cache(lambda name: build_shape(name, tmp_path_factory.mktemp("shaped") / "model"))


# ----------------------------------------------------------------------------------------------------- the same rows


@pytest.mark.parametrize("shape", ["gpt2", "mistral with a short window", "gemma3 with two kinds of layers", "mamba"])
def test_items_are_measured_as_if_each_choice_were_read_alone(shape: str, shaped: Callable[[str], LoadedModel]) -> None:
    check_items_as_if_alone(shaped(shape), shape in CONTINUE)


@pytest.mark.parametrize("context", [CONTEXT, 30])
def test_windows_that_are_cut_at_the_left_are_measured_as_if_alone(
    context: int, shaped: Callable[[str], LoadedModel]
) -> None:
    loaded = shaped("gpt2")
    questions = [QUESTIONS[3] * 3, QUESTIONS[0], QUESTIONS[3] * 2, EXAMPLES * 3]
    windows = cut_as_harness(documents(questions), loaded.tokenizer, context)
    begins = {(w.doc_id // len(CHOICES), w.ids[:4].tobytes()) for w in windows}
    assert len(begins) > len(questions), "choices of different lengths leave different beginnings"
    alone = measure(loaded, windows, 1)
    for budget in (64, 10**6):
        assert_as_alone(measure(loaded, windows, budget), alone)


def test_a_prefix_token_in_front_of_bare_choices_is_theirs_too(shaped: Callable[[str], LoadedModel]) -> None:
    loaded = shaped("llama")
    windows = cut_as_harness(documents(["", *QUESTIONS]), loaded.tokenizer, 64)
    assert {w.ids[0] for w in windows[: len(CHOICES)]} == {loaded.tokenizer.bos_token_id}
    assert_as_alone(measure(loaded, windows, 10**6), measure(loaded, windows, 1))


def test_texts_and_items_in_one_reading_are_measured_as_if_alone(
    shaped: Callable[[str], LoadedModel], tiny_text: list[str]
) -> None:
    loaded = shaped("gpt_neox")
    of_items = documents(QUESTIONS)
    n = len(of_items)
    texts = [Document(n + i, str(i), text) for i, text in enumerate([*tiny_text, *tiny_text])]
    windows = cut_as_harness(of_items, loaded.tokenizer, 64) + cut_windows(texts, loaded.tokenizer, 64)
    assert_as_alone(measure(loaded, windows, 10**6), measure(loaded, windows, 1))


@pytest.mark.parametrize("world", [2])
def test_processes_share_items_without_dividing_their_choices(world: int, shaped: Callable[[str], LoadedModel]) -> None:
    loaded = shaped("gpt2")
    windows = cut_as_harness(documents(QUESTIONS, before=EXAMPLES), loaded.tokenizer, CONTEXT)
    alone = measure(loaded, windows, 1)
    models = [load_model(loaded.name, None, "float32", torch.device("cpu")) for _ in range(world)]
    read: list[list[int]] = [[] for _ in range(world)]

    def work(processes: ProcessGroup) -> TokenColumns:
        def note(module: Any, args: tuple[torch.Tensor, ...]) -> None:
            read[processes.rank].append(args[0].numel())

        models[processes.rank].model.get_input_embeddings().register_forward_pre_hook(note)
        return measure(models[processes.rank], windows, 10**6, processes)

    for rows in in_group(world, work):
        assert isinstance(rows, dict), rows
        assert_as_alone(rows, alone)
    assert sum(map(sum, read)) < sum(window.n_read for window in windows), "each item's choices are in one process"


def test_a_model_whose_cache_does_not_continue_reads_each_choice_whole(
    shaped: Callable[[str], LoadedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = shaped("llama")
    windows = cut_as_harness(documents(QUESTIONS, before=EXAMPLES), loaded.tokenizer, 512)
    alone = measure(loaded, windows, 1)
    plain = loaded.model.model.rotary_emb.forward
    monkeypatch.setattr(  # positions that begin anew with each pass
        loaded.model.model.rotary_emb, "forward", lambda x, position_ids: plain(x, position_ids - position_ids[:, :1])
    )
    with counted(loaded) as n_read:
        assert_as_alone(measure(loaded, windows, 10**6), alone)
    assert sum(n_read) > sum(window.n_read for window in windows), "the trial, and every choice"


def test_memory_that_runs_out_with_shared_beginnings_halves_the_batches(shaped: Callable[[str], LoadedModel]) -> None:
    loaded = shaped("gpt2")
    questions = [f"{number}: {question}" for number in range(6) for question in QUESTIONS]
    windows = cut_as_harness(documents(questions, before=EXAMPLES), loaded.tokenizer, 512)
    alone = measure(loaded, windows, 1)
    longest = max(window.n_read for window in windows)
    advances: list[int] = []
    with small_memory(loaded.model, longest) as memory:
        rows = measure_windows(Reading(loaded, windows, ALONE, 10**6, advances.append))
    assert max(n_rows * n_tokens for n_rows, n_tokens in memory.tried) > longest
    assert_as_alone(rows, alone)
    assert sum(advances) == len(rows["doc_id"])


# ------------------------------------------------------------------------------------------------------------ the trie


def window_of(doc_id: int, context: Sequence[int], target: Sequence[int]) -> Window:
    ids = np.asarray([*context, *target], np.int32)
    return Window(doc_id, ids, np.arange(len(ids)) >= len(context), 0, 0, ends_in_label=True)


def shared(one: Window, other: Window) -> int:
    """Tokens that two windows share and that predict nothing scored, counted one by one."""
    n = 0
    for a, b in zip(one.ids[: one.n_read], other.ids[: other.n_read], strict=False):
        if a != b or one.scored[n + 1] or other.scored[n + 1]:
            break
        n += 1
    return n


def drawn(rng: np.random.Generator) -> list[Window]:
    """Windows of a tree of few tokens, so that beginnings of all lengths are shared."""
    examples = rng.integers(0, 3, 20).tolist()
    windows = []
    for doc_id in range(40):
        context = examples[: rng.integers(0, 21)] + rng.integers(0, 2, rng.integers(1, 9)).tolist()
        windows.append(window_of(doc_id, context, rng.integers(0, 3, rng.integers(1, 5)).tolist()))
    return windows


@pytest.mark.parametrize("seed", range(8))
def test_stems_hold_windows_that_share_their_beginning_and_every_window_stands_once(seed: int) -> None:
    windows = drawn(np.random.default_rng(seed))
    stems, alone = branches(windows)
    held = [window for stem in stems for window in stem.windows] + alone
    assert sorted(window.doc_id for window in held) == list(range(len(windows)))
    for stem in stems:
        for one, other in pairwise(stem.windows):
            assert shared(one, other) >= stem.depth > 0
        reads = {window.ids[: window.n_read].tobytes() for window in stem.windows}
        assert stem.n_reads == len(reads) > 1
        assert stem.n_tokens == sum(len(read) // 4 for read in reads)
    for budget in (1, 30, 10**6):
        batched = list(stem_batches(stems, budget))
        assert sorted(id(stem) for batch, _ in batched for stem in batch) == sorted(map(id, stems))
        for batch, depth in batched:
            assert depth == min(stem.depth for stem in batch)
            assert len(batch) == 1 or len(batch) * depth <= budget


def test_what_is_read_where_beginnings_are_read_once_is_counted_node_by_node() -> None:
    """12 tokens before all, 20 more of each of two items, three choices of 8: 12 + 2 x 20 + 6 x 8, each once."""
    rng = np.random.default_rng(0)
    before, own = rng.integers(0, 99, 12).tolist(), [rng.integers(100, 199, 20).tolist() for _ in range(2)]
    choices = [[200 + n, *rng.integers(0, 99, 8)] for n in range(3)]  # the last token is not read
    windows = [window_of(3 * item + n, before + own[item], choices[n]) for item in range(2) for n in range(3)]
    nodes = [(0, 12)] + 2 * [(12, 31)] + 6 * [(31, 40)]  # the last of a context predicts, so each choice reads it
    assert read_once(windows) == (
        sum(end - begin for begin, end in nodes),
        sum(token + token + 1 for begin, end in nodes for token in range(begin, end)),  # n^2 is the sum of 2 t + 1
    )


def test_choices_share_the_context_but_for_its_last_token_which_predicts_their_first() -> None:
    windows = [window_of(n, [5, 6, 7, 8, 9, 10], [n, 1]) for n in range(4)]
    (stem,), alone = branches(windows)
    assert (stem.depth, stem.n_reads, alone) == (5, 4, [])
    assert branches(windows, stem.depth) == ([], windows)


def test_a_beginning_of_two_words_is_not_worth_a_pass() -> None:
    windows = [window_of(n, [5, 6, *range(100 * n, 100 * n + 40)], [1]) for n in range(1, 9)]
    stems, alone = branches(windows)
    assert (stems, len(alone)) == ([], 8)


def test_contexts_that_grow_word_by_word_are_divided_without_end() -> None:
    ids = np.random.default_rng(0).integers(0, 9, 3000).tolist()
    windows = [window_of(n, ids[:n], [10]) for n in range(1, 3000, 2)]
    stems, alone = branches(windows)
    assert sum(len(stem.windows) for stem in stems) + len(alone) == 1500


@pytest.mark.parametrize("budget", [1, 12, 100])
def test_choices_of_one_token_count_once_in_a_batch_that_has_room(budget: int) -> None:
    windows = [window_of(4 * item + n, [item, 7, 8, 9], [n]) for item in range(5) for n in range(4)]
    batches = list(batch_windows(windows, budget))
    reads = [len({window.ids[:4].tobytes() for window in batch}) for batch in batches]
    assert [len(batch) for batch in batches] == {1: [1] * 20, 12: [8, 8, 4], 100: [20]}[budget]
    assert reads == {1: [1] * 20, 12: [2, 2, 1], 100: [5]}[budget]
